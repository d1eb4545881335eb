"""Check exercise 4 of lab 13: an allocator of blocks with tables and reference counts."""

from functools import partial

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises

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
NEEDED, COPY = "-(-positions // size)", "list(tables[request])"
TAKEN, KEPT = "        for block in free[", "        tables[request] = table\n"
LOST, MADE = "            return False\n", "        return True\n"
MISTAKES = [
    ("the number of blocks is rounded down; positions that begin a block need it whole",
     (NEEDED, "positions // size")),
    ("a whole number of blocks needs no further one: round up, do not add 1", (NEEDED, "(positions // size + 1)")),
    ("a block holds `size` positions; this takes a block for every position", (NEEDED, "positions")),
    ("`positions` is the number in all, with those that the table already holds", (" - len(table)", "")),
    ("the last free block is not taken: as many as are free may be taken",
     ("lacking > len(free)", "lacking >= len(free)")),
    ("the largest free number is taken; the smallest is asked for", ("in range(count)", "in reversed(range(count))")),
    ("references[block] stays 0 for a block in one table; 0 means free",
     ("references[block] += 1\n            table", "table")),
    ("a request that does not fit takes the blocks that are left; it has to change nothing",
     (f"        if lacking > len(free):\n{LOST}", ""), (MADE, "        return lacking <= len(free)\n")),
    ("a request that does not fit leaves an entry in `tables`; it has to change nothing",
     ("tables.get(request, [])", "tables.setdefault(request, [])")),
    ("extend returns False where it did what it was asked: return True", (MADE, "        return False\n")),
    ("extend returns nothing: return True or False", (LOST, "            return\n"), (MADE, "")),
    ("extend returns True where it did nothing: return False if too few blocks are free",
     (LOST, "            return True\n")),
    ("after fork, both tables are one list, and extending one extends the other: copy it", (COPY, "tables[request]")),
    ("fork adds no references: the blocks are then free while the other table still uses them",
     ("        for block in tables[new]:\n            references[block] += 1\n", "")),
    ("fork makes an empty table; it has the same blocks", (COPY, "[]")),
    ("release keeps the references, so the blocks are never free again", ("references[block] -= 1", "pass")),
    ("release keeps the table", ("tables.pop(request)", "tables[request]")),
    ("release frees blocks that another table still uses: take one reference away",
     ("references[block] -= 1", "references[block] = 0")),
    ("extend replaces the table by the new blocks: append them",
     (KEPT, "        tables[request] = table[-lacking:] if lacking > 0 else []\n")),
    ("a request with more blocks than it needs lacks a negative number, and free[:-1] takes nearly all free blocks",
     ("max(lacking, 0)", "lacking")),
    ("extend gives up blocks of a request that has more than it needs; only release does that",
     (TAKEN, "        for block in table[-(-positions // size) :]:\n            references[block] -= 1\n"
      f"            table.remove(block)\n{TAKEN}")),
    ("the new blocks come first in the table; it is in the order of the positions",
     (KEPT, "        tables[request] = table[-lacking:] + table[:-lacking] if lacking > 0 else table\n")),
]  # fmt: skip
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

    mistakes = [(sentence, partial(_run, one)) for sentence, one in variants(exercises.block_tables, MISTAKES)]
    cases = [_case(*case) for case in CASES]
    yield from judge(student, partial(_run, made), cases, mistakes, told=_told, advice=ADVICE)


def _run(answer, count, size, steps):
    """Return what each step does to an answer: (result, tables, references) after each.

    A table that two requests share as one list shows when one of them is extended."""
    tables, references, *functions = answer(count, size)
    named, found = dict(zip(PARTS[2:], functions, strict=True)), []
    for name, *arguments in steps:
        result = named[name](*arguments)
        held = {request: list(table) for request, table in tables.items()}
        found.append((result if name == "extend" else None, held, list(references)))
    return found


def _case(title, *arguments):
    right = _run(variant(exercises.block_tables), *arguments)
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
