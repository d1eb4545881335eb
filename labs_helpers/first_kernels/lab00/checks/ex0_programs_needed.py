"""Exercise 0 of lab 00: how many programs cover n elements."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_number
from labs_helpers.first_kernels.lab00 import exercises


@exercise("00/0", "how many programs?", points=5, minutes=3, reference=exercises.programs_needed)
def programs_needed(student):
    for n, BLOCK in ((1000, 128), (1024, 128), (1, 128), (129, 128), (10**9, 1024)):
        case, got = f"n = {n}, BLOCK = {BLOCK}", student(n, BLOCK)
        if isinstance(got, bool) or not isinstance(got, int):
            cause = {type(None): "there is no return", float: "/ gives a float, // an int"}.get(type(got), "")
            raise Wrong(case, f"returned {got!r}, a {type(got).__name__}; a number of programs is an int.", cause=cause)
        expect_number(case, "the number of programs", got, exercises.programs_needed(n, BLOCK), causes(n, BLOCK))
        yield f"{case}: {got}"


def causes(n: int, BLOCK: int):
    yield "// rounds down; the last, partial block needs a program too", n // BLOCK
    yield "n and BLOCK are swapped", -(-BLOCK // n)
    yield "a program takes BLOCK elements, not one", n
    yield "one is added also where BLOCK divides n", n // BLOCK + 1
