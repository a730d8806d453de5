"""PyPI's pypto (``@pypto.frontend.jit``, tensor level). Imports the domain alone."""
