"""Check exercise 4 of lab 13: an allocator of blocks with tables and reference counts."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.block_mistakes import MISTAKES, manager, run

PARTS = "tables", "references", "extend", "fork", "release"
CASES = (  # title, count, size, steps
    ("one request grows", 4, 4, tuple(("extend", "a", positions) for positions in (1, 4, 5, 2, 13))),
    (
        "two requests take turns, and one ends",
        6, 4,
        (("extend", "a", 6), ("extend", "b", 4), ("extend", "a", 9), ("release", "a"), ("extend", "c", 5),
         ("extend", "b", 8), ("extend", "b", 9)),
    ),
    (
        "too few blocks are free",
        3, 2,
        (("extend", "a", 3), ("extend", "b", 4), ("extend", "a", 7), ("extend", "b", 2), ("extend", "c", 1)),
    ),
    (
        "a fork, whose parent ends first",
        5, 2,
        (("extend", "a", 3), ("fork", "a", "b"), ("extend", "b", 5), ("extend", "a", 6), ("release", "a"),
         ("extend", "c", 2), ("release", "b"), ("extend", "d", 4)),
    ),
    (
        "a fork of a fork",
        4, 8,
        (("extend", "a", 9), ("fork", "a", "b"), ("fork", "b", "c"), ("release", "b"), ("extend", "c", 20),
         ("release", "a"), ("extend", "d", 9), ("release", "c")),
    ),
)  # fmt: skip
ADVICE = "print tables and references behind every call of this case, and find the first that you did not expect"


@exercise("13/4", "block tables", points=15, minutes=25, reference=exercises.block_tables)
def block_tables(student):
    def made(count, size):
        answer = expect_tuple("", student(count, size), *PARTS)
        tables, references, *functions = answer
        if not isinstance(tables, dict) or not isinstance(references, list):
            raise Wrong("", f"tables is {tables!r:.40} and references is {references!r:.40}; return the given ones")
        if not all(map(callable, functions)):
            raise Wrong("", f"the answer's parts are not {', '.join(PARTS)} in this order")
        return answer

    mistakes = [(sentence, lambda *given, mistake=mistake: run(mistake, *given)) for sentence, mistake in MISTAKES]
    yield from judge(
        student, lambda *given: run(made, *given), [_case(*case) for case in CASES], mistakes, told=_told, advice=ADVICE
    )


def _case(title, *arguments):
    right = run(manager, *arguments)
    held = sum(number > 0 for number in right[-1][2])
    return Case(title, arguments, right, f"{title}: {held} of {arguments[0]} blocks in use at the end")


def _told(case, found):
    steps = case.arguments[2]
    at = next(i for i, (mine, right) in enumerate(zip(found, case.right, strict=True)) if mine != right)
    name, *arguments = steps[at]
    part = next(i for i in range(3) if found[at][i] != case.right[at][i])
    what = ("the result", "tables", "references")[part]
    where = f"{what} after step {at + 1}, {name}({', '.join(map(repr, arguments))})"
    return f"{found[at][part]}", f"{case.right[at][part]}", where
