"""Answers for MPI's ranks, each rank in a jail of its own."""
