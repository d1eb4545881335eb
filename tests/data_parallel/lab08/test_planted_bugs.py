"""Each check of lab 08 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from labs_helpers.data_parallel.lab08 import checks as check
from labs_helpers.data_parallel.lab08 import exercises
from tests.data_parallel.lab08.bugs import (
    ex1_same_start,
    ex2_average_gradients,
    ex3_flat_average,
    ex4_overlapped,
    ex5_make_buckets,
    ex6_bucketed,
    ex7_exposed,
    ex8_accumulated,
    ex9_top_k_mean,
)
from tests.data_parallel.lab08.exercises.ex9_top_k_mean import top_k_mean
from tests.planted import PlantedBugs

FILES = (
    ex1_same_start,
    ex2_average_gradients,
    ex3_flat_average,
    ex4_overlapped,
    ex5_make_buckets,
    ex6_bucketed,
    ex7_exposed,
    ex8_accumulated,
    ex9_top_k_mean,
)


class TestLab08(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"top_k_mean": top_k_mean}
