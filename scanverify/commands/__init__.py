"""The command line, thin: options in, exit codes out. Nothing imports it."""
