# not a kernel
ROWS, COLS = 8, 32
