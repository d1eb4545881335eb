"""Manage blocks with one mistake each, as answers to exercise 4 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable


def manager(
    count: int,
    size: int,
    *,
    needed: Callable[[int, int], int] = lambda positions, size: -(-positions // size),
    fresh: Callable[[list, int], int] = lambda table, number: number - len(table),
    enough: Callable[[int, int], bool] = lambda lacking, free: lacking <= free,
    order: Callable[[list[int]], list[int]] = sorted,
    first: int = 1,  # the references of a block that is taken
    partly: bool = False,  # a request that does not fit takes what there is
    listed: bool = False,  # a request that does not fit gets an empty table
    result: Callable[[bool, bool], object] = lambda fits, new: fits,
    copied: Callable[[list], list] = list,
    counted: bool = True,  # a fork adds references
    given_back: int = 1,
    forgotten: bool = True,  # release removes the table
    zeroed: bool = False,  # release frees blocks that others use
    replaced: bool = False,  # an extended table holds the new blocks alone
    in_front: bool = False,
    sliced: bool = False,  # a negative number of missing blocks is a slice's end
    shrinks: bool = False,
) -> tuple:
    """Return the right five; other settings than the defaults make mistakes."""
    tables: dict[str, list[int]] = {}
    references = [0] * count

    def extend(request, positions):
        new = request not in tables
        table = tables.get(request, [])
        lacking = fresh(table, needed(positions, size))
        free = order([block for block in range(count) if references[block] == 0])
        for block in table[needed(positions, size) :] if shrinks else []:
            references[block] -= 1
            table.remove(block)
        fits = enough(lacking, len(free))
        if not fits and not partly:
            if listed:
                tables[request] = table
            return result(False, new)
        taken = free[: lacking if sliced else max(lacking, 0)]
        for block in taken:
            references[block] += first
        tables[request] = taken if replaced else taken + table if in_front else table + taken
        return result(fits, new)

    def fork(request, new):
        tables[new] = copied(tables[request])
        for block in tables[new] if counted else []:
            references[block] += 1

    def release(request):
        for block in tables[request]:
            references[block] = 0 if zeroed else references[block] - given_back
        if forgotten:
            del tables[request]

    return tables, references, extend, fork, release


def run(answer: Callable, count: int, size: int, steps: tuple) -> list:
    """Return what each step does to an answer: (result, tables, references) after each.

    A table that two requests share as one list shows when one of them is extended."""
    tables, references, extend, fork, release = answer(count, size)
    functions = {"extend": extend, "fork": fork, "release": release}
    found = []
    for name, *arguments in steps:
        result = functions[name](*arguments)
        held = {request: list(table) for request, table in tables.items()}
        found.append((result if name == "extend" else None, held, list(references)))
    return found


def _with(**settings) -> Callable:
    return lambda count, size: manager(count, size, **settings)


def _in_place(count, size):
    """The right manager, but tables grow in place and a fork shares the list."""
    tables, references, extend, fork, release = manager(count, size, copied=lambda table: table)

    def grow(request, positions):
        before = tables.get(request)
        fits = extend(request, positions)
        if fits and before is not None:
            before[:] = tables[request]
            tables[request] = before
        return fits

    return tables, references, grow, fork, release


def _all_or_more(lacking, free):
    return lacking < free


MISTAKES = [
    ("the number of blocks is rounded down; positions that begin a block need it whole",
     _with(needed=lambda positions, size: positions // size)),
    ("a whole number of blocks needs no further one: round up, do not add 1",
     _with(needed=lambda positions, size: positions // size + 1)),
    ("a block holds `size` positions; this takes a block for every position",
     _with(needed=lambda positions, size: positions)),
    ("`positions` is the number in all, with those that the table already holds",
     _with(fresh=lambda table, number: number)),
    ("the last free block is not taken: as many as are free may be taken", _with(enough=_all_or_more)),
    ("the largest free number is taken; the smallest is asked for", _with(order=lambda free: free[::-1])),
    ("references[block] stays 0 for a block in one table; 0 means free", _with(first=0)),
    ("a request that does not fit takes the blocks that are left; it has to change nothing", _with(partly=True)),
    ("a request that does not fit leaves an entry in `tables`; it has to change nothing", _with(listed=True)),
    ("extend returns False where it did what it was asked: return True",
     _with(result=lambda fits, new: False)),
    ("extend returns nothing: return True or False", _with(result=lambda fits, new: None)),
    ("extend returns True where it did nothing: return False if too few blocks are free",
     _with(result=lambda fits, new: True)),
    ("after fork, both tables are one list, and extending one extends the other: copy it", _in_place),
    ("fork adds no references: the blocks are then free while the other table still uses them",
     _with(counted=False)),
    ("fork makes an empty table; it has the same blocks", _with(copied=lambda table: [])),
    ("release keeps the references, so the blocks are never free again", _with(given_back=0)),
    ("release keeps the table", _with(forgotten=False)),
    ("release frees blocks that another table still uses: take one reference away", _with(zeroed=True)),
    ("extend replaces the table by the new blocks: append them", _with(replaced=True)),
    ("a request with more blocks than it needs lacks a negative number, and free[:-1] takes nearly all free blocks",
     _with(sliced=True)),
    ("extend gives up blocks of a request that has more than it needs; only release does that", _with(shrinks=True)),
    ("the new blocks come first in the table; it is in the order of the positions", _with(in_front=True)),
]  # fmt: skip
