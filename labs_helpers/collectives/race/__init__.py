"""Race our collectives against the MPI library's: the race, its settings, its records."""
