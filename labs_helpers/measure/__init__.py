"""Honest measurements: this machine, its datasheet, timing, roofs and memory, and the records of all of these."""
