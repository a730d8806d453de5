"""PyPI's pypto: the simulator, and what its worker executes (runner, calculator, origin, task
graph).
"""
