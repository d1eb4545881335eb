"""Compare a table that an answer returned (name → one number per column) with the right one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.pure_functions import Case, Part
from labs_helpers.course.verdict.wrong import Wrong

Table = Mapping[Hashable, Sequence[float]]


def expect_table(
    case: str, answer, right: Table, columns: Sequence[str], causes: Iterable[Candidates] = (), advice: str = ""
) -> Table:
    """Return the table `answer`; raise Wrong unless it equals `right` up to rounding in float64, in any order.

    causes: first those of wrong names, then those of each column; a candidate is a table, of which only that part is
    compared.
    """
    expect_rows(case, answer, columns)
    candidates = list(causes) or [()] * (1 + len(columns))
    if set(answer) != set(right):
        fitting = likely(candidates[0], lambda other: set(other) == set(answer))
        raise Wrong(case, _other_names(answer, right), cause=fitting, advice=advice)
    for i, column in enumerate(columns):
        if not _same(right, answer, i):
            fitting = likely(candidates[1 + i], lambda other, i=i: _same(answer, other, i))
            raise Wrong(case, _other_number(answer, right, i, column), cause=fitting, advice=advice)
    return answer


def expect_rows(case: str, answer, columns: Sequence[str]) -> Table:
    """Return the table `answer`; raise Wrong if it is not a table, or if a row does not have one number per column."""
    form = f"{{name: ({', '.join(columns)})}}"
    if not isinstance(answer, Mapping):
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"returned {answer!r:.80}, expected a dict {form}", cause=cause)
    for name, row in answer.items():
        numbers = isinstance(row, (tuple, list)) and all(isinstance(number, Real) for number in row)
        if not numbers or len(row) != len(columns):
            raise Wrong(case, f"has {row!r:.60} for {name!r}, expected {form}")
    return answer


def table_parts(
    columns: Sequence[str], mistakes: Sequence[Callable[..., Candidates]], of: Callable[[Any], Table] = lambda it: it
) -> list[Part]:
    """Return the parts of an answer that is a table, for `judge_parts`: its names, then each column.

    mistakes: those of the names, then those of each column; they yield tables. of: extracts the table from an answer.
    """
    names = Part(of, mistakes[0], lambda case, found: (_other_names(found, of(case.right)),), _same_names)
    return [names, *(_column_part(i, column, mistakes[1 + i], of) for i, column in enumerate(columns))]


def _column_part(i: int, column: str, mistakes: Callable[..., Candidates], of: Callable[[Any], Table]) -> Part:
    def told(case: Case, found: Table) -> tuple[str]:
        return (_other_number(found, of(case.right), i, column),)

    return Part(of, mistakes, told, lambda found, other: _same(other, found, i))


def _other_names(found: Table, right: Table) -> str:
    missing, extra = [name for name in right if name not in found], [name for name in found if name not in right]
    return "; ".join([f"missing: {_listed(missing)}"] * bool(missing) + [f"too many: {_listed(extra)}"] * bool(extra))


def _other_number(found: Table, right: Table, i: int, column: str) -> str:
    name = next(name for name, row in right.items() if not _near(found[name][i], row[i]))
    return f"{name}: {column} is {found[name][i]:,.6g}, expected {right[name][i]:,.6g}"


def _same_names(found: Table, other: Table) -> bool:
    return set(found) == set(other)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(b))


def _same(found: Table, other: Table, column: int) -> bool:
    """Tell whether this column is the same in both for all names of `found`."""
    return all(name in other and _near(row[column], other[name][column]) for name, row in found.items())


def _listed(names: list) -> str:
    return ", ".join(map(repr, names[:5])) + ", …" * (len(names) > 5)
