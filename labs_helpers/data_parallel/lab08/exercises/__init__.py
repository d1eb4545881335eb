"""The exercises of lab 08, one file each: stub, answer and reference in one."""

from labs_helpers.data_parallel.lab08.exercises.ex1_same_start import same_start
from labs_helpers.data_parallel.lab08.exercises.ex2_average_gradients import average_gradients
from labs_helpers.data_parallel.lab08.exercises.ex3_flat_average import flat_average
from labs_helpers.data_parallel.lab08.exercises.ex4_overlapped import overlapped
from labs_helpers.data_parallel.lab08.exercises.ex5_make_buckets import make_buckets
from labs_helpers.data_parallel.lab08.exercises.ex6_bucketed import bucketed
from labs_helpers.data_parallel.lab08.exercises.ex7_exposed import exposed
from labs_helpers.data_parallel.lab08.exercises.ex8_accumulated import accumulated

__all__ = [
    "accumulated",
    "average_gradients",
    "bucketed",
    "exposed",
    "flat_average",
    "make_buckets",
    "overlapped",
    "same_start",
]
