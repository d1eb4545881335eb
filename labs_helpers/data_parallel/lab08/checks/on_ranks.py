"""Run lab 08's answers on practice ranks, and explain their error messages."""

from __future__ import annotations

from functools import partial

from labs_helpers.course.verdict import on_practice_ranks
from labs_helpers.course.verdict.messages.distributed import NAMES_OF_RANKS, NOT_A_TENSOR
from labs_helpers.course.verdict.messages.torch import GRAD_DTYPE, SIZES_DIFFER
from labs_helpers.practice.process_groups import practice_process_groups

NONE = r"'NoneType' object (?!has no attribute '(wait|is_completed)')"
ERRORS = (  # pairs (pattern, cause); an exercise's own pairs take precedence
    NAMES_OF_RANKS,
    (
        r"'NoneType'[\s\S]*line \d+: .*(all_reduce|broadcast|all_gather)\([^\n]*\)\s*(/|\.(?!wait))",
        "a collective changes its tensor in place, and returns None",
    ),
    (
        SIZES_DIFFER + r"[\s\S]*line \d+: .*(\.(remove|index|count)\(| in )",
        "remove(), index() and `in` compare tensors element by element; clear() empties a list",
    ),
    (
        f"{NONE}|{NOT_A_TENSOR}[\\s\\S]*NoneType|unsupported operand .*'NoneType'",
        "a .grad is None where this rank has not used a parameter, or where it is frozen",
    ),
    (r"expected a non-empty", "the list of gradients may be empty"),
    (GRAD_DTYPE, "a .grad has its parameter's dtype, and a flat tensor has a single dtype: make one per dtype"),
    (r"context manager protocol", "return no_sync itself, without parentheses; `with no_sync():` calls it"),
)


# Each exercise's `call` makes its own tensors, and checks itself that every handle was waited for.
on_ranks = partial(on_practice_ranks, ranks=practice_process_groups, messages=ERRORS, unwaited="", copies=False)
