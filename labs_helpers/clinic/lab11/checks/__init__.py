"""The checks of lab 11, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.clinic.lab11.checks.ex7_decision_rules import decision_rules
from labs_helpers.clinic.lab11.checks.ex8_cures import cures
from labs_helpers.course.lab_summary import summary

__all__ = [
    "cures",
    "decision_rules",
    "summary",
]
