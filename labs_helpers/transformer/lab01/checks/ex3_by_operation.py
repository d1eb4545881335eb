"""Exercise 3 of lab 01: the GPU's time by operation, on traces made by hand and on real ones."""

from itertools import pairwise

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import Part
from labs_helpers.course.verdict.tables import expect_rows, table_parts
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import by_operation_mistakes as mistakes
from labs_helpers.transformer.lab01.checks.ask import judge_traces
from labs_helpers.transformer.lab01.checks.traces import BY_OPERATION

COLUMNS = ("calls", "µs")
ERRORS = (  # 99 and 0 are numbers of no operation, in a trace that has work without a number, too
    (r"^KeyError: (99|0|None)\b", mistakes.ORPHAN),
    (r"^KeyError: 'External id'", 'not every event has an "External id": args.get("External id")'),
    (r"^KeyError: 'correlation'", 'an operation has no "correlation", a launch\'s number; its own is "External id"'),
)
ADVICE = "follow one kernel by hand: its External id, the operation that has it, and where its µs end up."


def right(events):
    rows = mistakes.table(mistakes.pairs(events))
    return dict(sorted(rows.items(), key=lambda row: -row[1][1]))


def told_order(case, rows):
    before, after = next(pair for pair in pairwise(rows) if pair[0][2] < pair[1][2])
    pair = f"{after[0]} ({after[2]:g} µs) stands behind {before[0]} ({before[2]:g} µs)"
    return (f"{pair}; the dearest comes first",)


def in_order(rows, others):
    """By their µs: of equal ones any may come first."""
    return all(abs(one[2] - other[2]) <= 1e-6 for one, other in zip(rows, others, strict=True))


PARTS = [
    *table_parts(COLUMNS, [mistakes.names, mistakes.calls, mistakes.us]),
    Part(lambda table: [(name, *row) for name, row in table.items()], mistakes.order, told_order, in_order),
]


@exercise("01/3", "whose time it is", points=10, minutes=15, reference=exercises.by_operation)
def by_operation(student):
    def read(answer):
        return expect_rows("", answer, COLUMNS)

    def line(table):
        return f"{len(table)} operations, the dearest is {next(iter(table), None)}"

    yield from judge_traces(student, read, BY_OPERATION, right, PARTS, line, errors=ERRORS, advice=ADVICE)
