"""Check exercise 9 of lab 01: FLOPs per token and MFU, on shapes in which no two parts weigh the same."""

from math import isclose
from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import mfu_mistakes as mistakes

CASES = (  # name, config, length, tokens per second, peak
    ("small, 1,024 tokens", SIZES["small"], 1024, 180_000.0, 989e12),
    ("1b, 4,096 tokens", SIZES["1b"], 4096, 90_000.0, 989e12),
    ("4 of 12 heads for k and v", TransformerConfig(1000, 5, 168, 12, 430, kv_heads=4), 37, 7e5, 3e13),
    ("1 of 6 heads for k and v, not tied", TransformerConfig(311, 3, 84, 6, 196, 1, tied=False), 10, 9e6, 1e13),
    ("sequences of one token", TransformerConfig(97, 2, 24, 3, 50, 3), 1, 2.5e6, 1e12),
)


def told(case, name, found, at):
    return (f"{name} is {found:,.7g}, expected {case.right[at]:,.7g}",)


PARTS = [
    Part(itemgetter(0), mistakes.flops, lambda case, found: told(case, "flops", found, 0), isclose),
    Part(itemgetter(1), mistakes.share, lambda case, found: told(case, "flops is right, share", found, 1), isclose),
]
ADVICE = "write down the shape of each matrix in one layer, and compare each line of your sum with it."


@exercise("01/9", "FLOPs per token, and MFU", points=25, minutes=25, reference=exercises.mfu)
def mfu(student):
    def call(*shape):
        answer = expect_tuple("", student(*shape), "flops", "share")
        for name, found in zip(("flops", "share"), answer, strict=True):
            expect_is_number("", name, found)
        return answer

    yield from judge_parts(student, call, [_case(*row) for row in CASES], PARTS, advice=ADVICE)


def _case(name: str, *shape) -> Case:
    flops, share = right = mistakes.right(*shape)
    return Case(name, shape, right, f"{name}: {flops:,.0f} FLOPs per token, MFU {share:.1%}")
