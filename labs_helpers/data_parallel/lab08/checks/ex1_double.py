"""Exercise 1 of lab 08: every element doubled."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded
from labs_helpers.data_parallel.lab08 import exercises


@exercise("08/1", "double", points=10, minutes=5, reference=exercises.double, kernel=True)
def double(student):
    cases = [(f"n = {n}, NaN around", surrounded(numbers(n))) for n in (256, 300, 1)]
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="y", fused=True)
    yield check_compiles("double", run.launches[-1])


def truth(x) -> Truth:
    return Truth(2 * x.cpu().double(), 0.0, "twice a number is exact")


def causes(run, x):
    yield "x is copied, not doubled", x.cpu().double()
    yield "x is squared, not doubled", x.cpu().double() ** 2


def loads(run, x):
    yield "x", x, 1, "each element belongs to one program, which reads it once"
