"""What is declared of each simulator: limits that it states, and defects that it has."""
