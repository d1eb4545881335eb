"""Check exercise 5 of lab 12: the speed-up that bytes and FLOPs predict, and where it ends."""

from math import isclose
from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks.speed_up_mistakes import crossovers, speed_ups

H200 = 4.27e12, 800e12  # bytes/s and FLOP/s
SLOW = 300e9, 60e12
POWERS = 2.0**40, 2.0**48  # at 1024 × 1024 both times are equal from exactly 512 rows on
CPU = 60e9, 100e9  # so few FLOP/s that even one row is limited by them
CASES = (  # M, N, K, bits, group, machine
    (1, 14336, 4096, 8, None, H200),
    (4, 8192, 8192, 4, 128, H200),
    (64, 5632, 2048, 4, 32, H200),
    (16, 4096, 4096, 8, 64, SLOW),
    (128, 384, 384, 8, None, H200),
    (150, 8192, 8192, 4, None, SLOW),
    (200, 14336, 4096, 4, 64, H200),
    (4096, 4096, 14336, 8, None, H200),
    (7, 256, 128, 4, 32, H200),
    (2048, 256, 128, 8, None, H200),
    (1, 4096, 4096, 8, None, CPU),
    (32, 1024, 1024, 8, None, POWERS),
)
ADVICE = "write down the bytes of W, of its scales and zero points, of x and of y for this case, and the FLOPs"


@exercise("12/5", "the speed-up that bytes predict", points=10, minutes=15, reference=exercises.speed_up)
def speed_up(student):
    def numbers(*arguments):
        gain, crossover = expect_tuple("", student(*arguments), "speed_up", "crossover")
        expect_is_number("", "speed_up", gain)
        if crossover is not None:
            expect_is_number("", "crossover", crossover)
            if crossover != crossover // 1:
                raise Wrong("", f"crossover is {crossover:g}; it is a number of rows, a whole number")
        return gain, crossover

    parts = (
        Part(itemgetter(0), speed_ups, _told_gain, lambda a, b: a is not None and isclose(a, b, rel_tol=1e-6)),
        Part(itemgetter(1), crossovers, _told_crossover),
    )
    yield from judge_parts(student, numbers, [_case(*case) for case in CASES], parts, advice=ADVICE)


def _case(M, N, K, bits, group, machine):
    name = f"M = {M}, N = {N}, K = {K}, int{bits}" + (f" in groups of {group}" if group else "")
    right = variant(exercises.speed_up)(M, N, K, bits, group, *machine)
    ends = "never equal" if right[1] is None else f"equal from {right[1]:,} rows on"
    return Case(name, (M, N, K, bits, group, *machine), right, f"{name}: {right[0]:.2f} times as fast, {ends}")


def _told_gain(case, found):
    return f"{found:.6g}", f"{case.right[0]:.6g}", "the speed-up"


def _told_crossover(case, found):
    return f"{found}", f"{case.right[1]}", "the crossover"
