"""First kernels: a vector, a matrix and its transpose, a row, and which roof limits an operation; lab 00."""
