"""Measuring honestly: this machine, what its makers promise, times, roofs, memory, and the records of all that."""
