"""Race our wrappers and ZeRO stages against PyTorch's, on GPUs or on CPU ranks; see `__main__`."""
