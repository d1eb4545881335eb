"""The checks of lab 12, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.quantization.lab12.checks.ex1_quantize_int8 import quantize_int8
from labs_helpers.quantization.lab12.checks.ex2_int4_bytes import int4_bytes
from labs_helpers.quantization.lab12.checks.ex3_int8_linear import int8_linear
from labs_helpers.quantization.lab12.checks.ex4_int4_linear import int4_linear
from labs_helpers.quantization.lab12.checks.ex5_speed_up import speed_up
from labs_helpers.quantization.lab12.checks.ex6_smooth import smooth
from labs_helpers.quantization.lab12.checks.ex7_awq_search import awq_search
from labs_helpers.quantization.lab12.checks.ex8_int8_matmul import int8_matmul
from labs_helpers.quantization.lab12.checks.ex9_int8_cache_attention import int8_cache_attention

__all__ = [
    "awq_search",
    "int4_bytes",
    "int4_linear",
    "int8_cache_attention",
    "int8_linear",
    "int8_matmul",
    "quantize_int8",
    "smooth",
    "speed_up",
    "summary",
]
