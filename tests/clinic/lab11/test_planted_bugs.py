"""Each check of lab 11 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from labs_helpers.clinic.lab11 import checks as check
from labs_helpers.clinic.lab11 import exercises
from tests.clinic.lab11.bugs import ex4_find_leak, ex5_waits_for, ex6_differing, ex7_decision_rules, ex8_cures
from tests.planted import PlantedBugs

FILES = (
    ex4_find_leak,
    ex5_waits_for,
    ex6_differing,
    ex7_decision_rules,
    ex8_cures,
)


class TestLab11(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__}
