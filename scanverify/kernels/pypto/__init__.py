"""The bundled kernels for PyPI's pypto, one algorithm a file. They import domain and dialect."""
