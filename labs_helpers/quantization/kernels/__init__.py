"""Triton kernels that read quantized weights."""
