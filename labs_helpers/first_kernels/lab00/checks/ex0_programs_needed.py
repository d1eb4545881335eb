"""Exercise 0 of lab 00: how many programs cover n elements."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_number
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.first_kernels.lab00 import exercises

# In the last cases, a fraction added before rounding down is too small.
CASES = ((1000, 128), (1024, 128), (1, 128), (129, 128), (10**9, 1024), (4097, 4096), (2**26 + 1, 2**26))
COMPARED = "Python evaluates a comparison last: put it in parentheses, n // BLOCK + (n % BLOCK > 0)"


@exercise("00/0", "how many programs?", points=5, minutes=3, reference=exercises.programs_needed)
def programs_needed(student):
    passed = []
    for n, BLOCK in CASES:
        case, got = f"n = {n}, BLOCK = {BLOCK}", student(n, BLOCK)
        if isinstance(got, bool) or not isinstance(got, int):
            cause = {
                type(None): "the function returns nothing",
                float: "/ returns a float, // an int",
                bool: COMPARED,
            }.get(type(got), "")
            raise Wrong(
                case, f"returned {got!r}, a {type(got).__name__}; the number of programs must be an int.", cause=cause
            )
        right = exercises.programs_needed(n, BLOCK)
        possible = still_possible(causes(n, BLOCK), passed)
        expect_number(case, "the number of programs", got, right, possible)
        passed.append((tuple(causes(n, BLOCK)), right.__eq__))
        yield f"{case}: {got}"


def causes(n: int, BLOCK: int):
    yield "// rounds down; the last, partial block needs a program too", n // BLOCK
    yield "n and BLOCK are swapped", -(-BLOCK // n)
    yield "a program covers BLOCK elements, not one", n
    yield "one is added even if BLOCK divides n", n // BLOCK + 1
    yield "the remainder needs one more program, not one program per element", n // BLOCK + n % BLOCK
    for unbracketed in (n + BLOCK - 1 // BLOCK, n - 1 // BLOCK + 1, n + (BLOCK - 1) // BLOCK):
        yield "Python evaluates // before + and −: write (n + BLOCK - 1) // BLOCK", unbracketed
    yield "% gives the remainder, not the number of blocks", n % BLOCK
    yield "n is multiplied by BLOCK; a program covers BLOCK elements, so divide", n * BLOCK
    yield "BLOCK − 1 is subtracted from n; add it", (n - BLOCK + 1) // BLOCK
    yield "round() rounds to the nearest integer; even the smallest partial block needs a program", round(n / BLOCK)
    for fraction in (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999):
        yield (
            "adding a fraction before rounding down misses a small remainder; add BLOCK − 1 to n instead",
            int(n / BLOCK + fraction),
        )
