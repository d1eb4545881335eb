"""Exercise 1 of lab 00: z = x + y, the last block masked."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded
from labs_helpers.first_kernels.lab00 import exercises


@exercise("00/1", "vector add", points=10, minutes=10, reference=exercises.vector_add, kernel=True)
def vector_add(student):
    cases = (
        (f"{n} element{'s' if n > 1 else ''}, NaN around", surrounded(numbers(n)), surrounded(numbers(n, seed=1)))
        for n in (256, 300, 1)
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="z")
    yield "x and y read once, z written once: 12 bytes an element"
    yield check_compiles("vector add", run.launches[-1])


def truth(x, y) -> Truth:
    expected = x.cpu().double() + y.cpu().double()
    return Truth(expected, 2.0**-24 * expected.abs(), "one rounding")


def causes(run, x, y):
    x, y = x.cpu().double(), y.cpu().double()
    yield "both loads read x", 2 * x
    yield "both loads read y", 2 * y
    yield "y is not added", x
    yield "x is not added", y
    yield "a difference, not a sum", x - y


def loads(run, x, y):
    for name, tensor in (("x", x), ("y", y)):
        yield name, tensor, 1, "each element belongs to one program, which reads it once"
