"""Compute orders of tiles in plain Python: the order in groups, and the orders that common mistakes give."""

from __future__ import annotations

from collections.abc import Callable

Place = Callable[[int, int, int, int], tuple[int, int]]  # (pid, tiles_m, tiles_n, GROUP_M) → (row, column)


def order_of(place: Place, tiles_m: int, tiles_n: int, GROUP_M: int) -> list[tuple[int, int]]:
    """Return the tile (row, column) of each program."""
    return [place(pid, tiles_m, tiles_n, GROUP_M) for pid in range(tiles_m * tiles_n)]


def in_groups(pid, tiles_m, tiles_n, GROUP_M, *, size=None, first=None, rows=None):
    """Return the tile of program `pid`. size, first, rows: a mistaken group size, first row and number of rows."""
    size = size or GROUP_M * tiles_n
    group, place = divmod(pid, size)
    top = group * GROUP_M if first is None else first(group)
    rows = min(tiles_m - top, GROUP_M) if rows is None else rows(top)
    return top + _rem(place, rows), _div(place, rows)


def _div(a: int, b: int) -> int:
    """Divide integers like Triton's interpreter, which rounds towards 0 and returns 0 for a divisor of 0."""
    return 0 if b == 0 else int(a / b)


def _rem(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * _div(a, b)


def _parts(pid, tiles_m, tiles_n, GROUP_M):
    """Return the group's first row, its number of rows, and pid's place within the group."""
    group, place = divmod(pid, GROUP_M * tiles_n)
    return group * GROUP_M, min(tiles_m - group * GROUP_M, GROUP_M), place


def _of(formula) -> Place:
    """Build a Place from formula(pid, first row, rows, place, tiles_n, GROUP_M)."""
    return lambda pid, m, n, g: formula(pid, *_parts(pid, m, n, g), n, g)


def _late(pid, m, n, g, group):
    """Use another group number, and count the place from that group's first program."""
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
    ("this is plain row order; within a group the programs go down its rows before they go on to the next column",
     lambda pid, m, n, g: (pid // n, pid % n)),
    ("this is plain column order, without groups", lambda pid, m, n, g: (pid % m, pid // m)),
    ("row and column are swapped", lambda pid, m, n, g: in_groups(pid, m, n, g)[::-1]),
    ("your groups consist of columns; they must consist of rows", _groups_of_columns),
    ("the last group has fewer rows than GROUP_M: it has tl.minimum(tiles_m − first row, GROUP_M)",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: g)),
    ("count the remaining rows from the group's first row: tl.minimum(tiles_m − first row, GROUP_M)",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m, g))),
    ("take the smaller of GROUP_M and the remaining rows: tl.minimum", lambda pid, m, n, g: in_groups(
        pid, m, n, g, rows=lambda top: max(m - top, g))),
    ("tiles_m % GROUP_M is 0 where GROUP_M divides tiles_m; use tl.minimum(tiles_m − first row, GROUP_M)",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: m % g)),
    ("the row is taken from pid, not from the place within the group",
     _of(lambda pid, first, rows, place, n, g: (first + pid % rows, place // rows))),
    ("the row is taken from pid % GROUP_M; use the place within the group % this group's number of rows",
     _of(lambda pid, first, rows, place, n, g: (first + pid % g, place // rows))),
    ("row and column both use GROUP_M, and the row is taken from pid, but the last group has fewer rows",
     _of(lambda pid, first, rows, place, n, g: (first + pid % g, place // g))),
    ("the place within a group counts from the group's first program: pid % (GROUP_M · tiles_n)",
     _of(lambda pid, first, rows, place, n, g: (first + pid % rows, pid // rows))),
    ("for the column, the place is divided by GROUP_M instead of this group's number of rows",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place // g))),
    ("the row is the place % GROUP_M instead of the place % this group's number of rows",
     _of(lambda pid, first, rows, place, n, g: (first + place % g, place // rows))),
    ("the group's first row is not added to the row",
     _of(lambda pid, first, rows, place, n, g: (place % rows, place // rows))),
    ("a group's first row is group · GROUP_M", lambda pid, m, n, g: in_groups(pid, m, n, g, first=lambda group: group)),
    ("a group has GROUP_M · tiles_n programs", lambda pid, m, n, g: in_groups(pid, m, n, g, size=g * m)),
    ("a group has GROUP_M · tiles_n programs", lambda pid, m, n, g: _late(pid, m, n, g, pid // (g * m))),
    ("a group has GROUP_M · tiles_n programs, not GROUP_M", lambda pid, m, n, g: in_groups(pid, m, n, g, size=g)),
    ("a group has GROUP_M · tiles_n programs, not tiles_n", lambda pid, m, n, g: in_groups(pid, m, n, g, size=n)),
    ("a group has GROUP_M · tiles_n programs, so pid // GROUP_M is not its number",
     lambda pid, m, n, g: _late(pid, m, n, g, pid // g)),
    ("a group has GROUP_M · tiles_n programs, so pid // tiles_n is not its number",
     lambda pid, m, n, g: _late(pid, m, n, g, pid // n)),
    ("the last group has tiles_m − first row rows; your number is off by one",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m - top + 1, g))),
    ("the last group has tiles_m − first row rows; your number is off by one",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(m - top - 1, g))),
    ("the last group has tiles_m − first row rows; your number is off by one",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: g if top + g <= m else m - top - 1)),
    ("the number of rows depends on tiles_m, not on tiles_n",
     lambda pid, m, n, g: in_groups(pid, m, n, g, rows=lambda top: min(n - top, g))),
    ("a group's first row is group · GROUP_M, not group · the number of its programs",
     lambda pid, m, n, g: in_groups(pid, m, n, g, first=lambda group: group * g * g * n)),
    ("the column is the place // this group's number of rows",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place // n))),
    ("the column is the place // this group's number of rows",
     _of(lambda pid, first, rows, place, n, g: (first + place % rows, place % n))),
    ("row and column within the group are exchanged; the row is the remainder, the column the quotient",
     _of(lambda pid, first, rows, place, n, g: (first + _div(place, rows), _rem(place, rows)))),
    ("the place within a group is pid % (GROUP_M · tiles_n), not pid % GROUP_M",
     _of(lambda pid, first, rows, place, n, g: (first + _rem(pid % g, rows), _div(pid % g, rows)))),
    ("the programs go up every other column; they must go down every column", _snake),
    ("the programs go up the rows of a group; they must go down",
     _of(lambda pid, first, rows, place, n, g: (first + rows - 1 - place % rows, place // rows))),
)  # fmt: skip
