"""The checks of lab 11, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.clinic.lab11.checks.ex4_find_leak import find_leak
from labs_helpers.clinic.lab11.checks.ex5_waits_for import waits_for
from labs_helpers.clinic.lab11.checks.ex6_differing import differing
from labs_helpers.clinic.lab11.checks.ex7_decision_rules import decision_rules
from labs_helpers.clinic.lab11.checks.ex8_cures import cures
from labs_helpers.course.lab_summary import summary

__all__ = [
    "cures",
    "decision_rules",
    "differing",
    "find_leak",
    "summary",
    "waits_for",
]
