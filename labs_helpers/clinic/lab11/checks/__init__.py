"""The checks of lab 11, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.clinic.lab11.checks.ex1_time_of_parts import time_of_parts
from labs_helpers.clinic.lab11.checks.ex2_cost_by_elimination import cost_by_elimination
from labs_helpers.clinic.lab11.checks.ex3_find_straggler import find_straggler
from labs_helpers.clinic.lab11.checks.ex9_smallest_change import smallest_change
from labs_helpers.course.lab_summary import summary

__all__ = [
    "cost_by_elimination",
    "find_straggler",
    "smallest_change",
    "summary",
    "time_of_parts",
]
