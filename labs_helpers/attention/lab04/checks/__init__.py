"""The checks of lab 04, called in its notebook as `check.name(name)`."""

from labs_helpers.attention.lab04.checks.counts import attention_costs
from labs_helpers.attention.lab04.checks.kernels import causal_attention, tile_attention, window_attention
from labs_helpers.attention.lab04.checks.merging import merge
from labs_helpers.attention.lab04.checks.softmax import row_softmax
from labs_helpers.course.scoreboard import summary

__all__ = [
    "attention_costs",
    "causal_attention",
    "merge",
    "row_softmax",
    "summary",
    "tile_attention",
    "window_attention",
]
