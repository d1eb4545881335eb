"""Exercise 5 of lab 04: causal attention of any length."""

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.attended import attention_cases
from labs_helpers.attention.lab04.checks.operands import apart, between_nan, faint, in_steps
from labs_helpers.course.exercise import exercise


@exercise("04/5", "causal", points=20, minutes=20, reference=exercises.causal_attention, kernel=True)
def causal_attention(student):
    # At these sizes, every bound that is off by a key or by a tile changes the result or the loads.
    cases = (
        ("70 queries and keys, surrounded by NaN", between_nan(70, 70), 32, 16),
        ("80 queries, 33 keys: 47 queries see no key", between_nan(80, 33, D=32), 16, 32),
        ("1 query, 50 keys", between_nan(1, 50), 16, 32),
        ("64 queries, 78 keys", between_nan(64, 78, D=32), 32, 16),
        ("33 queries, 80 keys, scores rise and fall by 300", in_steps(33, 80, D=32), 32, 16),
        ("float16, 16 queries, 512 keys, each with a small weight", faint(512, 32), 16, 32),
        ("float16, 60 queries, 70 keys, different strides", apart(60, 70), 16, 16),
    )
    yield from attention_cases(student, cases, causal=True)
