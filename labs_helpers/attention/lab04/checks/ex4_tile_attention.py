"""Exercise 4 of lab 04: attention tile by tile."""

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.attended import attend
from labs_helpers.attention.lab04.checks.operands import apart, between_nan, near
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores


@exercise("04/4", "forward", points=20, minutes=25, reference=exercises.tile_attention, kernel=True)
def tile_attention(student):
    run = None
    for case, tensors, BLOCK_M, BLOCK_N in (
        ("64 queries, 192 keys, NaN around", between_nan(64, 192, D=32), 16, 64),
        ("all scores near +200", near(200.0, 64, 96, D=32), 32, 32),
        ("all scores near −200", near(-200.0, 64, 96, D=32), 32, 32),
        ("float16, Q, K and V with strides of their own", apart(32, 64, D=32), 16, 32),
    ):
        run = attend(case, student, tensors, BLOCK_M, BLOCK_N, causal=False)
        yield case
    yield "Q read once, K and V once a row of tiles, only O and the log-sum-exp written: nothing of size L²"
    yield check_tensor_cores(run.launches[-1])
