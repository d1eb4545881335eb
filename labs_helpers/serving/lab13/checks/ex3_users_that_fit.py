"""Check exercise 3 of lab 13: bytes of a cache, and users that fit."""

from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.fit_mistakes import paged, per_position, reserved, right
from labs_helpers.transformer.config import SIZES, TransformerConfig

SMALL = TransformerConfig(512, layers=3, width=80, heads=10, hidden=256, kv_heads=2, context=100)
GROUPED = TransformerConfig(128_000, layers=32, width=4096, heads=32, hidden=14_336, kv_heads=8, context=8192)
NAMES = "bytes_per_position", "reserved", "paged"
CASES = (  # name, config, parameters, memory, length, size
    ("a small model, 37 positions in blocks of 8", SMALL, 9_000, 1_000_000, 37, 8),
    ("a whole number of blocks per user", SMALL, 9_000, 1_000_000, 32, 16),
    ("users shorter than a block", SMALL, 30_011, 777_777, 5, 16),
    ("blocks of 1 position", SMALL, 100, 222_222, 19, 1),
    ("lab 01's 1B model, 40 GB, 640 positions", SIZES["1b"], 953_223_168, 40 * 10**9, 640, 16),
    ("8B with grouped queries, 80 GB, 1,000 positions", GROUPED, 8_030_000_000, 80 * 10**9, 1_000, 16),
)  # fmt: skip
ADVICE = "multiply the bytes of one position out by hand: keys and values, layers, heads, numbers per head, 2 bytes"


@exercise("13/3", "how many users fit", points=10, minutes=15, reference=exercises.users_that_fit)
def users_that_fit(student):
    def counted(*arguments):
        answer = expect_tuple("", student(*arguments), *NAMES)
        for name, number in zip(NAMES, answer, strict=True):
            expect_is_number("", name, number)
        return answer

    parts = [
        Part(itemgetter(i), mistakes, lambda case, found, i=i: (f"{found:,}", f"{case.right[i]:,}", NAMES[i]))
        for i, mistakes in enumerate((per_position, reserved, paged))
    ]
    yield from judge_parts(student, counted, [_case(*case) for case in CASES], parts, advice=ADVICE)


def _case(name, *arguments):
    users = right(*arguments)
    return Case(name, arguments, users, f"{name}: {users[1]:,} users reserve, {users[2]:,} fit with blocks")
