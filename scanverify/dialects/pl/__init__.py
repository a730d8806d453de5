"""hw-native-sys PyPTO (``pypto.language as pl``).

Imports the domain, and of PyPI's dialect its conditions.
"""
