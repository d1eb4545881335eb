"""Triton kernels that read quantized weights."""

MOST_ROWS = 64  # of the few-rows kernel, each of whose programs takes all rows
