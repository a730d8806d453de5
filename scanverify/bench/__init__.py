"""Measurements: how tight the bounds are, how fast all of it is beside bare PyPTO."""
