"""The checks of lab 05, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.attention.lab05.checks.ex1_attention_function import attention_function
from labs_helpers.attention.lab05.checks.ex2_query_gradient import query_gradient
from labs_helpers.attention.lab05.checks.ex3_key_value_gradients import key_value_gradients
from labs_helpers.attention.lab05.checks.ex4_dq_conflicts import dq_conflicts
from labs_helpers.attention.lab05.checks.ex5_softcap_gradients import softcap_gradients
from labs_helpers.course.lab_summary import summary

__all__ = [
    "attention_function",
    "dq_conflicts",
    "key_value_gradients",
    "query_gradient",
    "softcap_gradients",
    "summary",
]
