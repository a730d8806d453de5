"""Property-based verification of prefix-sum (scan) kernels written in PyPTO."""

__version__ = "0.1.0"
