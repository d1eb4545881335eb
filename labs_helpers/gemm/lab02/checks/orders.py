"""Orders of tiles in plain Python: the one in groups, and what common mistakes make of it."""

from __future__ import annotations

from collections.abc import Callable

Place = Callable[[int, int, int, int], tuple[int, int]]  # (pid, tiles_m, tiles_n, GROUP_M) → (row, column)


def order_of(place: Place, tiles_m: int, tiles_n: int, GROUP_M: int) -> list[tuple[int, int]]:
    """The tile of each program."""
    return [place(pid, tiles_m, tiles_n, GROUP_M) for pid in range(tiles_m * tiles_n)]


def in_groups(pid, tiles_m, tiles_n, GROUP_M, *, size=None, first=None, rows=None):
    """The right order; size, first and rows: what a mistake takes for a group's programs, first row and rows."""
    size = size or GROUP_M * tiles_n
    group, place = divmod(pid, size)
    top = group * GROUP_M if first is None else first(group)
    rows = min(tiles_m - top, GROUP_M) if rows is None else rows(top)
    return top + _rem(place, rows), _div(place, rows)


def _div(a: int, b: int) -> int:
    """Whole division as Triton's interpreter does it: towards 0, and 0 by 0."""
    return 0 if b == 0 else int(a / b)


def _rem(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * _div(a, b)


def _parts(pid, tiles_m, tiles_n, GROUP_M):
    """(first row, rows, place) of the right order."""
    group, place = divmod(pid, GROUP_M * tiles_n)
    return group * GROUP_M, min(tiles_m - group * GROUP_M, GROUP_M), place


def _of(formula) -> Place:
    """From formula(pid, first row, rows, place, tiles_n, GROUP_M)."""
    return lambda pid, m, n, g: formula(pid, *_parts(pid, m, n, g), n, g)


def _late(pid, m, n, g, group):
    """With another number for the group, and the place counted from that group's first program."""
    rows, place = min(m - group * g, g), pid - group * g * n
    return group * g + _rem(place, rows), _div(place, rows)


def _groups_of_columns(pid, m, n, g):
    column, row = in_groups(pid, n, m, g)
    return row, column


def _snake(pid, m, n, g):
    row, column = in_groups(pid, m, n, g)
    first, rows, _ = _parts(pid, m, n, g)
    return (row if column % 2 == 0 else 2 * first + rows - 1 - row), column


WRONG_ORDERS: tuple[tuple[str, Place], ...] = (
    ("this is plain row order: within a group the programs walk down its rows before they go on to the next column",
     lambda pid, m, n, g: (pid // n, pid % n)),
    ("this is plain column order: the groups are not used", lambda pid, m, n, g: (pid % m, pid // m)),
    ("row and column are swapped", lambda pid, m, n, g: in_groups(pid, m, n, g)[::-1]),
    ("the groups are of columns; they are to be of rows", _groups_of_columns),
    ("the last group has fewer rows than GROUP_M: its rows are tl.minimum(tiles_m − first row, GROUP_M)",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: g)),
    ("the rows of a group are what is left below its first row, tiles_m − first row, and GROUP_M at most",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m, g))),
    ("the smaller of GROUP_M and what is left: tl.minimum", lambda pid, m, n, g: in_groups(
        pid, m, n, g, rows=lambda top: max(m - top, g))),
    ("tiles_m % GROUP_M is what the last group has, and 0 where they divide; tl.minimum(tiles_m − first row, GROUP_M)",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: m % g)),
    ("the row is taken from pid, not from the place within the group",
     _of(lambda pid, first, rows, place, n, g: (first + pid % rows, place // rows))),
    ("the row is taken from pid % GROUP_M: it is the place within the group % the rows of this group",
     _of(lambda pid, first, rows, place, n, g: (first + pid % g, place // rows))),
    ("both row and column divide by GROUP_M and the row is taken from pid: the last group has fewer rows",
     _of(lambda pid, first, rows, place, n, g: (first + pid % g, place // g))),
    ("the place within a group counts from the group's first program: pid % (GROUP_M · tiles_n)",
     _of(lambda pid, first, rows, place, n, g: (first + pid % rows, pid // rows))),
    ("the column is divided by GROUP_M, not by the rows that this group has",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place // g))),
    ("the row is taken % GROUP_M, not % the rows that this group has",
     _of(lambda pid, first, rows, place, n, g: (first + place % g, place // rows))),
    ("the group's first row is not added to the row",
     _of(lambda pid, first, rows, place, n, g: (place % rows, place // rows))),
    ("a group's first row is group · GROUP_M", lambda pid, m, n, g: in_groups(pid, m, n, g, first=lambda group: group)),
    ("a group has GROUP_M · tiles_n programs", lambda pid, m, n, g: in_groups(pid, m, n, g, size=g * m)),
    ("a group has GROUP_M · tiles_n programs", lambda pid, m, n, g: _late(pid, m, n, g, pid // (g * m))),
    ("a group has GROUP_M · tiles_n programs, not GROUP_M", lambda pid, m, n, g: in_groups(pid, m, n, g, size=g)),
    ("a group has GROUP_M · tiles_n programs, not tiles_n", lambda pid, m, n, g: in_groups(pid, m, n, g, size=n)),
    ("a group has GROUP_M · tiles_n programs: pid // GROUP_M is another number",
     lambda pid, m, n, g: _late(pid, m, n, g, pid // g)),
    ("a group has GROUP_M · tiles_n programs: pid // tiles_n is another number",
     lambda pid, m, n, g: _late(pid, m, n, g, pid // n)),
    ("the rows of the last group are what is left, tiles_m − first row, neither one more nor one less",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m - top + 1, g))),
    ("the rows of the last group are what is left, tiles_m − first row, neither one more nor one less",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m - top - 1, g))),
    ("the rows of the last group are what is left, tiles_m − first row, neither one more nor one less",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: g if top + g <= m else m - top - 1)),
    ("rows are counted against tiles_m, not tiles_n",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(n - top, g))),
    ("a group's first row is group · GROUP_M, not group · the programs of a group",
     lambda pid, m, n, g: in_groups(pid, m, n, g, first=lambda group: group * g * g * n)),
    ("the column is the place // the rows of this group",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place // n))),
    ("the column is the place // the rows of this group",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place % n))),
    ("row and column of the place are exchanged: the row is the rest, the column the quotient",
     _of(lambda pid, first, rows, place, n, g: (first + _div(place, rows), _rem(place, rows)))),
    ("the place within a group counts all of its programs, GROUP_M · tiles_n, not GROUP_M",
     _of(lambda pid, first, rows, place, n, g: (first + _rem(pid % g, rows), _div(pid % g, rows)))),
    ("every other column is walked upwards; every column is to be walked down", _snake),
    ("the rows of a group are walked upwards; they are to be walked down",
     _of(lambda pid, first, rows, place, n, g: (first + rows - 1 - place % rows, place // rows))),
)  # fmt: skip
