"""The exercises of lab 12, one file each: stub, answer and reference in one."""

from labs_helpers.quantization.lab12.exercises.ex1_quantize_int8 import quantize_int8
from labs_helpers.quantization.lab12.exercises.ex2_int4_bytes import int4_bytes
from labs_helpers.quantization.lab12.exercises.ex3_int8_linear import int8_linear
from labs_helpers.quantization.lab12.exercises.ex4_int4_linear import int4_linear
from labs_helpers.quantization.lab12.exercises.ex5_speed_up import speed_up
from labs_helpers.quantization.lab12.exercises.ex6_smooth import smooth
from labs_helpers.quantization.lab12.exercises.ex7_awq_search import awq_search
from labs_helpers.quantization.lab12.exercises.ex8_int8_matmul import int8_matmul

__all__ = [
    "awq_search",
    "int4_bytes",
    "int4_linear",
    "int8_linear",
    "int8_matmul",
    "quantize_int8",
    "smooth",
    "speed_up",
]
