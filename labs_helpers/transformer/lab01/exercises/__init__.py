"""The exercises of lab 01, a file each: stub, answer and reference in one."""

from labs_helpers.transformer.lab01.exercises.ex1_benchmark import benchmark
from labs_helpers.transformer.lab01.exercises.ex2_gpu_time import gpu_time
from labs_helpers.transformer.lab01.exercises.ex3_by_operation import by_operation
from labs_helpers.transformer.lab01.exercises.ex4_bound_by import bound_by
from labs_helpers.transformer.lab01.exercises.ex5_peak_bytes import peak_bytes
from labs_helpers.transformer.lab01.exercises.ex6_scaled_update import scaled_update
from labs_helpers.transformer.lab01.exercises.ex7_place_checkpoints import place_checkpoints

__all__ = ["benchmark", "bound_by", "by_operation", "gpu_time", "peak_bytes", "place_checkpoints", "scaled_update"]
