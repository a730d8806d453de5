"""``scanverify check``: one kernel, every property that it claims, what was found told once.

It imports search and reports.
"""
