"""The exercises of lab 11, one file each: stub, answer and reference in one."""

from labs_helpers.clinic.lab11.exercises.ex4_find_leak import find_leak
from labs_helpers.clinic.lab11.exercises.ex5_waits_for import waits_for
from labs_helpers.clinic.lab11.exercises.ex6_differing import differing

__all__ = [
    "differing",
    "find_leak",
    "waits_for",
]
