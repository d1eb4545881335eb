"""The exercises of lab 11, one file each: stub, answer and reference in one."""

from labs_helpers.clinic.lab11.exercises.ex1_time_of_parts import time_of_parts
from labs_helpers.clinic.lab11.exercises.ex2_cost_by_elimination import cost_by_elimination
from labs_helpers.clinic.lab11.exercises.ex3_find_straggler import find_straggler

__all__ = [
    "cost_by_elimination",
    "find_straggler",
    "time_of_parts",
]
