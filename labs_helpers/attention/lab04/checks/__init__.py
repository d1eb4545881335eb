"""The checks of lab 04, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.attention.lab04.checks.ex1_attention_costs import attention_costs
from labs_helpers.attention.lab04.checks.ex2_merge import merge
from labs_helpers.attention.lab04.checks.ex3_row_softmax import row_softmax
from labs_helpers.attention.lab04.checks.ex4_tile_attention import tile_attention
from labs_helpers.attention.lab04.checks.ex5_causal_attention import causal_attention
from labs_helpers.attention.lab04.checks.ex6_window_attention import window_attention
from labs_helpers.course.lab_summary import summary

__all__ = [
    "attention_costs",
    "causal_attention",
    "merge",
    "row_softmax",
    "summary",
    "tile_attention",
    "window_attention",
]
