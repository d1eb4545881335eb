"""The exercises of lab 01, one file each: stub, answer and reference in one."""

from labs_helpers.course.retired import retired_in
from labs_helpers.transformer.lab01.exercises.ex1_benchmark import benchmark
from labs_helpers.transformer.lab01.exercises.ex2_gpu_time import gpu_time
from labs_helpers.transformer.lab01.exercises.ex4_bound_by import bound_by
from labs_helpers.transformer.lab01.exercises.ex5_peak_bytes import peak_bytes
from labs_helpers.transformer.lab01.exercises.ex6_scaled_update import scaled_update
from labs_helpers.transformer.lab01.exercises.ex7_place_checkpoints import place_checkpoints
from labs_helpers.transformer.lab01.exercises.ex9_mfu import mfu

__all__ = ["benchmark", "bound_by", "gpu_time", "mfu", "peak_bytes", "place_checkpoints", "scaled_update"]
__getattr__ = retired_in("01")
