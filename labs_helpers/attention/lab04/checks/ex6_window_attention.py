"""The transfer exercise of lab 04: attention to a sliding window of keys."""

from labs_helpers.attention.lab04.checks.attended import attention_cases
from labs_helpers.attention.lab04.checks.operands import apart, between_nan, faint, in_steps
from labs_helpers.course.exercise import exercise


@exercise("04/6", "transfer: a sliding window", points=30, minutes=15, kernel=True)
def window_attention(student):
    # At these sizes and windows, every bound that is off by a key or by a tile changes the result or the loads.
    cases = (
        ("window of 18, 70 queries and keys, surrounded by NaN", between_nan(70, 70, D=32), 32, 16, 18),
        ("window of 1: each query sees one key", between_nan(40, 40), 32, 16, 1),
        ("window of 100, longer than the sequence", between_nan(70, 70, D=32), 16, 32, 100),
        ("window of 61, 64 queries, 78 keys", between_nan(64, 78, D=32), 32, 16, 61),
        ("window of 9, 80 queries, 33 keys: 47 queries see no key", between_nan(80, 33, D=32), 16, 16, 9),
        ("window of 16, 33 queries, 80 keys, scores rise and fall by 300", in_steps(33, 80, D=32), 16, 32, 16),
        ("float16, window of 512, 16 queries, 512 keys, each with a small weight", faint(512, 32), 16, 32, 512),
        ("float16, window of 20, 60 queries, 70 keys, different strides", apart(60, 70), 32, 16, 20),
    )
    yield from attention_cases(student, cases, causal=True)
