"""Exercise 4 of lab 04: attention tile by tile."""

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.attended import attention_cases
from labs_helpers.attention.lab04.checks.operands import apart, between_nan, faint, in_steps, near
from labs_helpers.course.exercise import exercise


@exercise("04/4", "forward", points=20, minutes=25, reference=exercises.tile_attention, kernel=True)
def tile_attention(student):
    cases = (
        ("64 queries, 192 keys, surrounded by NaN", between_nan(64, 192, D=32), 16, 64),
        ("all scores near +200", near(200.0, 64, 96, D=16), 64, 32),
        ("all scores near −200", near(-200.0, 64, 96, D=32), 32, 32),
        ("scores rise and fall by 300 from tile to tile", in_steps(32, 96, D=32), 32, 16),
        ("float16, 1024 keys, each with a small weight", faint(1024, 32), 16, 32),
        ("float16, Q, K and V with different strides", apart(32, 64, D=32), 16, 32),
    )
    yield from attention_cases(student, cases, causal=False)
