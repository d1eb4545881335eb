"""Each check of lab 11 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from labs_helpers.clinic.lab11 import checks as check
from labs_helpers.clinic.lab11 import exercises
from tests.clinic.lab11.bugs import (
    ex1_time_of_parts,
    ex2_cost_by_elimination,
    ex3_find_straggler,
    ex4_find_leak,
    ex5_waits_for,
    ex6_differing,
    ex7_decision_rules,
    ex8_cures,
    ex9_smallest_change,
)
from tests.clinic.lab11.exercises.ex9_smallest_change import smallest_change
from tests.planted import PlantedBugs

FILES = (
    ex1_time_of_parts,
    ex2_cost_by_elimination,
    ex3_find_straggler,
    ex4_find_leak,
    ex5_waits_for,
    ex6_differing,
    ex7_decision_rules,
    ex8_cures,
    ex9_smallest_change,
)


class TestLab11(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"smallest_change": smallest_change}
