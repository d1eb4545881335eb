"""Race this package's wrappers and ZeRO stages against PyTorch's, on GPUs or on ranks of a CPU; see `__main__`."""
