"""Check the transfer exercise of lab 13: blocks that a tree of conversations shares."""

from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, first_wrong, judge
from labs_helpers.serving.lab13.checks.tree_mistakes import MISTAKES, tree

NAMES = "tables", "references", "copies", "peak"
CASES = (  # title, events, size
    ("one conversation", (("start", "a"), ("append", "a", 3), ("append", "a", 1), ("append", "a", 1)), 4),
    (
        "a fork inside a block, and both go on",
        (("start", "a"), ("append", "a", 6), ("fork", "b", "a"), ("append", "b", 1), ("append", "a", 4)),
        4,
    ),
    (
        "a fork at the end of a block",
        (("start", "a"), ("append", "a", 8), ("fork", "b", "a"), ("append", "b", 2), ("append", "a", 1)),
        4,
    ),
    (
        "the parent ends before the child goes on",
        (("start", "a"), ("append", "a", 5), ("fork", "b", "a"), ("append", "b", 0), ("end", "a"), ("append", "b", 2),
         ("start", "c"), ("append", "c", 9)),
        4,
    ),
    (
        "three answers to one question",
        (("start", "q"), ("append", "q", 10), ("fork", "x", "q"), ("fork", "y", "q"), ("fork", "z", "q"), ("end", "q"),
         ("append", "x", 3), ("append", "y", 7), ("append", "z", 2)),
        4,
    ),
    (
        "a tree of depth 3, whose branches end",
        (("start", "r"), ("append", "r", 7), ("fork", "s", "r"), ("append", "s", 6), ("fork", "t", "s"),
         ("append", "t", 0), ("append", "t", 4), ("end", "s"), ("fork", "u", "r"), ("append", "r", 2), ("end", "r"),
         ("append", "u", 1), ("append", "t", 1)),
        3,
    ),
    (
        "an empty conversation is forked",
        (("start", "a"), ("fork", "b", "a"), ("append", "a", 1), ("append", "b", 5), ("end", "a"), ("end", "b")),
        2,
    ),
    ("blocks of one position", (("start", "a"), ("append", "a", 2), ("fork", "b", "a"), ("append", "b", 1)), 1),
)  # fmt: skip
ERRORS = (
    (r"KeyError: \d+",
     "a block that nobody uses has no entry in `references`: was it given up twice, or while another table held it?"),
    (r"IndexError: list index out of range",
     "a table without blocks has no last block: the conversation is empty, or got too few blocks"),
)  # fmt: skip
ADVICE = "draw the tables after each event of this case, one row per conversation, and the references below"


@exercise("13/11", "transfer: a tree of conversations", points=45, minutes=40)
def conversation_tree(student):
    def checked(events, size):
        tables, references, copies, peak = expect_tuple("", student(events, size), *NAMES)
        for name, part in (("tables", tables), ("references", references)):
            if not isinstance(part, dict):
                raise Wrong("", f"{name} is {part!r:.60}; it is a dict")
        if not isinstance(copies, list | tuple) or not isinstance(peak, Integral):
            raise Wrong("", f"copies is {copies!r:.40} and peak is {peak!r:.40}; they are a list and a whole number")
        return {name: list(table) for name, table in tables.items()}, dict(references), [*map(tuple, copies)], peak

    cases, told = [_case(*case) for case in CASES], first_wrong(*NAMES)
    yield from judge(student, checked, cases, MISTAKES, told=told, errors=ERRORS, otherwise=_zeros, advice=ADVICE)


def _case(title, events, size):
    right = tree(events, size)
    line = f"{title}: {len(right[1])} blocks in use, at most {right[3]}; {len(right[2])} copies"
    return Case(title, (events, size), right, line)


def _zeros(case, found):
    """Return the cause if blocks without references are listed: whoever counts or avoids them is misled as well."""
    return "references has entries of blocks that are not in use; leave them out" if 0 in found[1].values() else ""
