"""A table that an answer returned, name → a number in each column, against what it should be."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.wrong import Wrong

Table = Mapping[Hashable, Sequence[float]]


def expect_table(
    case: str, answer, right: Table, columns: Sequence[str], causes: Iterable[Candidates] = (), advice: str = ""
) -> Table:
    """Returns the table that `answer` is; raises Wrong unless it is `right`, up to what float64 rounds, in any order.

    causes: of other names first, then of each column; a candidate is a table, of which only that is compared.
    """
    form = f"{{name: ({', '.join(columns)})}}"
    if not isinstance(answer, Mapping):
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"returned {answer!r:.80}; a dict {form} is asked for", cause=cause)
    for name, row in answer.items():
        numbers = isinstance(row, (tuple, list)) and all(isinstance(number, Real) for number in row)
        if not numbers or len(row) != len(columns):
            raise Wrong(case, f"has {row!r:.60} for {name!r}; {form} is asked for")
    candidates = list(causes) or [()] * (1 + len(columns))
    if set(answer) != set(right):
        missing, extra = [name for name in right if name not in answer], [name for name in answer if name not in right]
        said = [f"missing: {_listed(missing)}"] * bool(missing) + [f"too many: {_listed(extra)}"] * bool(extra)
        fitting = likely(candidates[0], lambda other: set(other) == set(answer))
        raise Wrong(case, "; ".join(said), cause=fitting, advice=advice)
    for i, column in enumerate(columns):
        for name, row in right.items():
            if not _near(answer[name][i], row[i]):
                found = f"{name}: {column} is {answer[name][i]:,.6g}, expected {row[i]:,.6g}"
                fitting = likely(candidates[1 + i], lambda other, i=i: _same(answer, other, i))
                raise Wrong(case, found, cause=fitting, advice=advice)
    return answer


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(b))


def _same(found: Table, other: Table, column: int) -> bool:
    """Whether this column is the same in both, for all names of `found`."""
    return all(name in other and _near(row[column], other[name][column]) for name, row in found.items())


def _listed(names: list) -> str:
    return ", ".join(map(repr, names[:5])) + ", …" * (len(names) > 5)
