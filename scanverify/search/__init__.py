"""The search for counterexamples with Hypothesis: find, shrink, corpus, tally.

It imports properties and examination, and writes no reports.
"""
