"""The exercises of lab 04; each file holds the stub, the answer and the reference."""

from labs_helpers.attention.lab04.exercises.ex1_attention_costs import attention_costs
from labs_helpers.attention.lab04.exercises.ex2_merge import merge
from labs_helpers.attention.lab04.exercises.ex3_row_softmax import row_softmax
from labs_helpers.attention.lab04.exercises.ex4_tile_attention import tile_attention
from labs_helpers.attention.lab04.exercises.ex5_causal_attention import causal_attention

__all__ = ["attention_costs", "causal_attention", "merge", "row_softmax", "tile_attention"]
