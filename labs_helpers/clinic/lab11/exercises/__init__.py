"""The exercises of lab 11, one file each: stub, answer and reference in one."""

from labs_helpers.clinic.lab11.exercises.ex7_decision_rules import decision_rules
from labs_helpers.clinic.lab11.exercises.ex8_cures import cures

__all__ = [
    "cures",
    "decision_rules",
]
