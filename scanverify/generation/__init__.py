"""Hypothesis strategies for cases, and how far a run goes (profiles).

It imports the domain, and asks kernels what they can express; it runs nothing.
"""
