"""Plain functions on this machine: the simulator, and what its worker executes."""
