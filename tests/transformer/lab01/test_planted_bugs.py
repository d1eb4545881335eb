"""Each check of lab 01 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.transformer.lab01 import checks as check
from labs_helpers.transformer.lab01 import exercises
from tests.planted import PlantedBugs
from tests.transformer.lab01.bugs import (
    ex1_benchmark,
    ex2_gpu_time,
    ex4_bound_by,
    ex5_peak_bytes,
    ex6_scaled_update,
    ex7_place_checkpoints,
    ex8_diagnose,
    ex9_mfu,
)
from tests.transformer.lab01.exercises.ex8_diagnose import diagnose

FILES = (
    ex1_benchmark,
    ex2_gpu_time,
    ex4_bound_by,
    ex5_peak_bytes,
    ex6_scaled_update,
    ex7_place_checkpoints,
    ex8_diagnose,
    ex9_mfu,
)


class TestLab01(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"diagnose": diagnose}
