"""Lab 05: the backward pass of FlashAttention-2, an exercise a file, and the one-kernel version beside it."""

from labs_helpers.bench.machine import prepare_triton

prepare_triton()  # before the first kernel is decorated: it decides between interpreter and compiler

from labs_helpers.attention.gradient.attention_function import attention_function  # noqa: E402
from labs_helpers.attention.gradient.dq_conflicts import dq_conflicts  # noqa: E402
from labs_helpers.attention.gradient.key_value_gradients import key_value_gradients  # noqa: E402
from labs_helpers.attention.gradient.one_kernel import added_up_query_gradient, one_kernel_gradients  # noqa: E402
from labs_helpers.attention.gradient.query_gradient import query_gradient  # noqa: E402

__all__ = ["added_up_query_gradient", "attention_function", "dq_conflicts", "key_value_gradients",
           "one_kernel_gradients", "query_gradient"]
