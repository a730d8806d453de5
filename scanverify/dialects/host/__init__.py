"""Plain numpy and torch functions. Imports nothing."""
