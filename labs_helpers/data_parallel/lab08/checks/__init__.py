"""The checks of lab 08, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.data_parallel.lab08.checks.ex1_same_start import same_start
from labs_helpers.data_parallel.lab08.checks.ex2_average_gradients import average_gradients
from labs_helpers.data_parallel.lab08.checks.ex3_flat_average import flat_average
from labs_helpers.data_parallel.lab08.checks.ex4_overlapped import overlapped
from labs_helpers.data_parallel.lab08.checks.ex5_make_buckets import make_buckets
from labs_helpers.data_parallel.lab08.checks.ex6_bucketed import bucketed
from labs_helpers.data_parallel.lab08.checks.ex7_exposed import exposed
from labs_helpers.data_parallel.lab08.checks.ex8_accumulated import accumulated
from labs_helpers.data_parallel.lab08.checks.ex9_top_k_mean import top_k_mean

__all__ = [
    "accumulated",
    "average_gradients",
    "bucketed",
    "exposed",
    "flat_average",
    "make_buckets",
    "overlapped",
    "same_start",
    "summary",
    "top_k_mean",
]
