"""The exercises of lab 05; each file holds the stub, the answer and the reference."""

from labs_helpers.attention.lab05.exercises.ex1_attention_function import attention_function
from labs_helpers.attention.lab05.exercises.ex2_query_gradient import query_gradient
from labs_helpers.attention.lab05.exercises.ex3_key_value_gradients import key_value_gradients
from labs_helpers.attention.lab05.exercises.ex4_dq_conflicts import dq_conflicts

__all__ = ["attention_function", "dq_conflicts", "key_value_gradients", "query_gradient"]
