"""The exercises of lab 10, one file each: stub, answer and reference in one."""

from labs_helpers.pipeline.lab10.exercises.ex1_stage_spans import stage_spans
from labs_helpers.pipeline.lab10.exercises.ex2_naive_step import naive_step
from labs_helpers.pipeline.lab10.exercises.ex3_gpipe_order import gpipe_order
from labs_helpers.pipeline.lab10.exercises.ex4_one_f_one_b_order import one_f_one_b_order
from labs_helpers.pipeline.lab10.exercises.ex5_bubble_and_stashes import bubble_and_stashes
from labs_helpers.pipeline.lab10.exercises.ex6_interleaved_order import interleaved_order
from labs_helpers.pipeline.lab10.exercises.ex7_split_backward import split_backward
from labs_helpers.pipeline.lab10.exercises.ex8_rank_groups import rank_groups

__all__ = [
    "bubble_and_stashes",
    "gpipe_order",
    "interleaved_order",
    "naive_step",
    "one_f_one_b_order",
    "rank_groups",
    "split_backward",
    "stage_spans",
]
