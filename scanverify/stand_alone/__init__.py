"""Texts that drive simulators from a stand-alone reproducer; none is imported here."""
