"""Hidden inputs of lab 11, which only the grader uses."""

from labs_helpers.clinic.lab11.hidden import (
    ex4_find_leak,
    ex5_waits_for,
    ex6_differing,
    ex7_decision_rules,
    ex8_cures,
)

__all__ = [
    "ex4_find_leak",
    "ex5_waits_for",
    "ex6_differing",
    "ex7_decision_rules",
    "ex8_cures",
]
