"""Triton kernels of the decode loop that no other topic has."""
