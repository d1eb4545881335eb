"""Lab 06: MPI collectives from scratch."""
