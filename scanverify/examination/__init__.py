"""One case from end to end: run, judge, and held against what is declared (``declared/``).

It imports the domain and the simulators; it draws no cases and writes no reports.
"""
