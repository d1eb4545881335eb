"""The checks of lab 10, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.pipeline.lab10.checks.ex1_stage_spans import stage_spans
from labs_helpers.pipeline.lab10.checks.ex2_naive_step import naive_step
from labs_helpers.pipeline.lab10.checks.ex3_gpipe_order import gpipe_order
from labs_helpers.pipeline.lab10.checks.ex4_one_f_one_b_order import one_f_one_b_order
from labs_helpers.pipeline.lab10.checks.ex5_bubble_and_stashes import bubble_and_stashes
from labs_helpers.pipeline.lab10.checks.ex6_interleaved_order import interleaved_order
from labs_helpers.pipeline.lab10.checks.ex7_split_backward import split_backward
from labs_helpers.pipeline.lab10.checks.ex8_rank_groups import rank_groups
from labs_helpers.pipeline.lab10.checks.ex9_unequal_order import unequal_order

__all__ = [
    "bubble_and_stashes",
    "gpipe_order",
    "interleaved_order",
    "naive_step",
    "one_f_one_b_order",
    "rank_groups",
    "split_backward",
    "stage_spans",
    "summary",
    "unequal_order",
]
