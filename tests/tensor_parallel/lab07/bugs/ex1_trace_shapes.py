"""Exercise 1 of lab 07: mistakes that its check has to name, and right answers written differently."""

BUGS: list = []
DIFFERENT: list = []
