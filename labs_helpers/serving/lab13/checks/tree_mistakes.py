"""Share the blocks of a tree of conversations with one mistake each, as answers to exercise 11 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Event = tuple
Answer = tuple[dict[str, list[int]], dict[int, int], list[tuple[int, int]], int]


def tree(
    events: Sequence[Event],
    size: int,
    *,
    shares: bool = True,  # False: a fork copies every block
    full_only: bool = False,  # a fork shares full blocks, and copies the last one at once
    copies_when: Callable = lambda length, size, references: length % size and references > 1,
    needed: Callable = lambda length, size: -(-length // size),
    given_up: bool = True,  # a copy takes a reference of the old block away
    zeroed: bool = False,
    reused: bool = True,
    counted: Callable = lambda references, tables: len(references),
    at_end: bool = False,  # the peak is the last number of blocks
    backwards: bool = False,
    original: bool = False,  # the appending conversation keeps the block, all others get the copy
    empty: bool = False,  # ended conversations stay, with an empty table
    one_list: bool = False,
    nothing_copies: bool = False,  # appending 0 positions copies, too
) -> Answer:
    """Return the right answer; other settings than the defaults make mistakes."""
    tables: dict[str, list[int]] = {}
    lengths: dict[str, int] = {}
    references: dict[int, int] = {}
    copies: list[tuple[int, int]] = []
    taken = peak = 0

    def take() -> int:
        nonlocal taken
        block = next(n for n in range(len(references) + 1) if n not in references) if reused else taken
        taken += 1
        references[block] = 1
        return block

    def drop(block: int) -> None:
        references[block] = references.get(block, 0) - 1
        if references[block] <= 0 or zeroed:
            del references[block]

    def copied(block: int) -> int:
        new = take()
        copies.append((new, block) if backwards else (block, new))
        return new

    for kind, name, *more in events:
        if kind == "start":
            tables[name], lengths[name] = [], 0
        elif kind == "fork":
            parent = tables[more[0]]
            lengths[name] = lengths[more[0]]
            partly = full_only and lengths[name] % size > 0
            shared = parent[:-1] if partly else parent if shares else []
            for block in shared:
                references[block] = references.get(block, 0) + 1
            rest = parent[-1:] if partly else [] if shares else parent
            tables[name] = parent if one_list else [*shared, *(copied(block) for block in rest)]
        elif kind == "end":
            for block in tables.pop(name):
                drop(block)
            if empty:
                tables[name] = []
        else:
            table, length = tables[name], lengths[name]
            if table and (more[0] or nothing_copies) and copies_when(length, size, references.get(table[-1], 0)):
                old, new = table[-1], copied(table[-1])
                if original:
                    for other in (other for key, other in tables.items() if key != name and old in other):
                        other[other.index(old)] = new
                    references[new], references[old] = references[old] - 1, 1
                else:
                    table[-1] = new
                    if given_up:
                        drop(old)
            lengths[name] += more[0]
            while len(table) < needed(lengths[name], size):
                table.append(take())
        peak = counted(references, tables) if at_end else max(peak, counted(references, tables))
    return tables, references, copies, peak


def _with(**settings) -> Callable:
    return lambda events, size: tree(events, size, **settings)


MISTAKES = [
    ("a conversation writes into a block that another table also holds: copy it first",
     _with(copies_when=lambda length, size, references: False)),
    ("a fork copies every block; it shares them until somebody writes", _with(shares=False)),
    ("a fork copies the last block at once; only a conversation that appends to it needs a copy",
     _with(full_only=True)),
    ("a block is copied although nobody else has it any more: only the other table made the copy necessary",
     _with(copies_when=lambda length, size, references: length % size)),
    ("a full block is copied: the next position goes into a new block anyway",
     _with(copies_when=lambda length, size, references: references > 1)),
    ("after a copy, the old block keeps the reference of the table that no longer holds it", _with(given_up=False)),
    ("a block is given up while another table still holds it: take one reference away", _with(zeroed=True)),
    ("blocks that nobody uses are not taken again: the smallest free number comes next", _with(reused=False)),
    ("peak is the number of blocks at the end; the most at any time are asked for", _with(at_end=True)),
    ("peak counts a shared block once per table; it is one block",
     _with(counted=lambda references, tables: sum(map(len, tables.values())))),
    ("peak is the length of the longest table; count the blocks of all conversations",
     _with(counted=lambda references, tables: max(map(len, tables.values()), default=0))),
    ("a copy is (from, to), the old block first", _with(backwards=True)),
    ("the copy goes to the other conversations; the one that appends takes it", _with(original=True)),
    ("an ended conversation keeps an entry in `tables`", _with(empty=True)),
    ("after a fork, both tables are one list: appending to one changes the other", _with(one_list=True)),
    ("appending 0 positions writes nothing, and needs no copy", _with(nothing_copies=True)),
    ("the number of blocks is rounded down; positions that begin a block need it whole",
     _with(needed=lambda length, size: length // size)),
    ("a whole number of blocks needs no further one: round up, do not add 1",
     _with(needed=lambda length, size: length // size + 1)),
]  # fmt: skip
