"""The checks of lab 05, called in its notebook as `check.name(name)`."""

from labs_helpers.attention.lab05.checks.conflicts import dq_conflicts
from labs_helpers.attention.lab05.checks.function import attention_function
from labs_helpers.attention.lab05.checks.kernels import key_value_gradients, query_gradient
from labs_helpers.attention.lab05.checks.softcap import softcap_gradients
from labs_helpers.course.scoreboard import summary

__all__ = [
    "attention_function",
    "dq_conflicts",
    "key_value_gradients",
    "query_gradient",
    "softcap_gradients",
    "summary",
]
