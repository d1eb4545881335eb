"""Check exercise 12 of lab 07: the ratio of communication to compute for several machines and widths."""

from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.tensor_parallel.lab07 import exercises

TFLOPS, GB = 1e12, 1e9
CASES = (  # name, width, tp, FLOP/s, bytes/s
    ("width 2,048 on 4 GPUs, 495 TFLOP/s, 349 GB/s", 2048, 4, 495 * TFLOPS, 349 * GB),
    ("width 8,192 on 8 GPUs, 400 TFLOP/s, 300 GB/s", 8192, 8, 400 * TFLOPS, 300 * GB),
    ("width 4,096 on 2 machines, 400 TFLOP/s, 50 GB/s", 4096, 2, 400 * TFLOPS, 50 * GB),
    ("width 256 on 4 cores, 0.03 TFLOP/s, 1 GB/s", 256, 4, 0.03 * TFLOPS, 1 * GB),
    ("1 rank: nothing is sent", 1024, 1, 495 * TFLOPS, 349 * GB),
)
HALF = "the all-reduces take half the right time; count 4 of them, each with 2 · (tp − 1) / tp of 2 bytes per number"
TWICE = (
    "the all-reduces take twice the right time; a number has 2 bytes, and a block 4 all-reduces in both passes together"
)
THIRD = "compute takes a third of the right time: the backward pass's 4 FLOPs are missing, or the MLP's weights are"
UNDIVIDED = (
    "compute is not divided by tp although the ranks share it, or messages are although each sends whole activations"
)
TWO_THIRDS = (
    "the ratio is 1.5 times too large: it counts only the forward pass, 4 FLOPs in all, or only the MLP's weights"
)
MISTAKES = (  # functions of (the right ratio, tp, width)
    ("the ratio is inverted; divide communication by compute", lambda s, p, w: 1 / s),
    (UNDIVIDED, lambda s, p, w: s / p),
    (
        "compute is divided by tp twice, or the / tp is missing from the all-reduces' (tp − 1) / tp",
        lambda s, p, w: s * p,
    ),
    (HALF, lambda s, p, w: s / 2),
    (TWICE, lambda s, p, w: s * 2),
    (THIRD, lambda s, p, w: s * 3),
    (TWO_THIRDS, lambda s, p, w: s * 1.5),
    ("both times count only the backward pass", lambda s, p, w: s * 0.75),
    ("an all-reduce sends (tp − 1) / tp of its bytes twice; the factor tp − 1 is missing", lambda s, p, w: s / (p - 1)),
    (
        "an all-reduce sends (tp − 1) / tp of its bytes twice; this factor is taken as 1",
        lambda s, p, w: s * p / (p - 1),
    ),
    (
        "it uses (tp + 1) / tp; an all-reduce sends (tp − 1) / tp of its bytes twice",
        lambda s, p, w: s * (p + 1) / (p - 1),
    ),
    ("the factor 12 is missing; a block has 12 · width² parameters", lambda s, p, w: s * 12),
    ("the parameters grow with width², not with width", lambda s, p, w: s * w),
    ("it divides by the sum of both times; divide communication by compute alone", lambda s, p, w: s / (1 + s)),
)


def _case(name: str, *arguments) -> Case:
    right = exercises.communication_share(*arguments)
    return Case(name, arguments, right, f"{name}: {right:.3g} s in all-reduces per second of compute")


def _of_arguments(function):
    return lambda width, tp, *rates: function(exercises.communication_share(width, tp, *rates), tp, width)


OF_ARGUMENTS = [(sentence, _of_arguments(function)) for sentence, function in MISTAKES]


@exercise("07/12", "communication over compute", points=10, minutes=15, reference=exercises.communication_share)
def communication_share(student):
    yield from judge(
        student,
        student,
        [_case(*case) for case in CASES],
        OF_ARGUMENTS,
        told=lambda case, answer: (f"{answer!r:.40}", f"{case.right:.6g}"),
        same=lambda a, b: isinstance(a, float | int) and isclose(a, b, rel_tol=1e-6),
        advice="write down both times for one token, with their units, and divide at the end",
    )
