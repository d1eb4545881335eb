"""The checks of lab 11, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.clinic.lab11.checks.ex1_time_of_parts import time_of_parts
from labs_helpers.clinic.lab11.checks.ex2_cost_by_elimination import cost_by_elimination
from labs_helpers.clinic.lab11.checks.ex3_find_straggler import find_straggler
from labs_helpers.clinic.lab11.checks.ex4_find_leak import find_leak
from labs_helpers.clinic.lab11.checks.ex5_waits_for import waits_for
from labs_helpers.clinic.lab11.checks.ex6_differing import differing
from labs_helpers.clinic.lab11.checks.ex7_decision_rules import decision_rules
from labs_helpers.clinic.lab11.checks.ex8_cures import cures
from labs_helpers.clinic.lab11.checks.ex9_smallest_change import smallest_change
from labs_helpers.course.lab_summary import summary

__all__ = [
    "cost_by_elimination",
    "cures",
    "decision_rules",
    "differing",
    "find_leak",
    "find_straggler",
    "smallest_change",
    "summary",
    "time_of_parts",
    "waits_for",
]
