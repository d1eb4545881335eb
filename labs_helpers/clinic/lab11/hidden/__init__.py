"""Hidden inputs of lab 11, which only the grader uses."""

from labs_helpers.clinic.lab11.hidden import (
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

__all__ = [
    "ex1_time_of_parts",
    "ex2_cost_by_elimination",
    "ex3_find_straggler",
    "ex4_find_leak",
    "ex5_waits_for",
    "ex6_differing",
    "ex7_decision_rules",
    "ex8_cures",
    "ex9_smallest_change",
]
