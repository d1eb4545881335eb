"""The exercises of lab 11, one file each: stub, answer and reference in one."""

from labs_helpers.clinic.lab11.exercises.ex1_time_of_parts import time_of_parts
from labs_helpers.clinic.lab11.exercises.ex2_cost_by_elimination import cost_by_elimination
from labs_helpers.clinic.lab11.exercises.ex3_find_straggler import find_straggler
from labs_helpers.clinic.lab11.exercises.ex4_find_leak import find_leak
from labs_helpers.clinic.lab11.exercises.ex5_waits_for import waits_for
from labs_helpers.clinic.lab11.exercises.ex6_differing import differing
from labs_helpers.clinic.lab11.exercises.ex7_decision_rules import decision_rules
from labs_helpers.clinic.lab11.exercises.ex8_cures import cures

__all__ = [
    "cost_by_elimination",
    "cures",
    "decision_rules",
    "differing",
    "find_leak",
    "find_straggler",
    "time_of_parts",
    "waits_for",
]
