"""The checks of lab 01, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.course.retired import retired_in
from labs_helpers.transformer.lab01.checks.ex1_benchmark import benchmark
from labs_helpers.transformer.lab01.checks.ex2_gpu_time import gpu_time
from labs_helpers.transformer.lab01.checks.ex4_bound_by import bound_by
from labs_helpers.transformer.lab01.checks.ex5_peak_bytes import peak_bytes
from labs_helpers.transformer.lab01.checks.ex6_scaled_update import scaled_update
from labs_helpers.transformer.lab01.checks.ex7_place_checkpoints import place_checkpoints
from labs_helpers.transformer.lab01.checks.ex8_diagnose import diagnose
from labs_helpers.transformer.lab01.checks.ex9_mfu import mfu

__all__ = [
    "benchmark",
    "bound_by",
    "diagnose",
    "gpu_time",
    "mfu",
    "peak_bytes",
    "place_checkpoints",
    "scaled_update",
    "summary",
]
__getattr__ = retired_in("01")
