"""Draw the content of each rank after a wrong answer: one row per rank, one column per chunk, expected next to
actual."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labs_helpers.course.verdict.picture import KINDS, NOTHING, Panel, Picture

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
COLUMNS = 8
NEVER, OTHER = "–", "?"
LEGEND = f"Each letter is one content; {NEVER}: never written, {OTHER}: something else."
SAID = ("right", "not asked for", "wrong")  # the numbers of kinds in these panels

Paths = Mapping[tuple, np.ndarray]


def holdings(
    title: str, expected: Sequence[Sequence[str]], got: Sequence[Sequence[str]], kinds: Any, below: str, column="chunk"
) -> Picture:
    """Return the picture of two tables of texts, one row per rank. kinds: for each cell of `got`, an index into
    SAID, or NOTHING."""
    kinds = np.asarray(kinds, np.int8)
    asked = np.where(kinds == SAID.index("wrong"), SAID.index("right"), kinds)
    place = (0.0, float(kinds.shape[1]), float(kinds.shape[0]), 0.0)
    panels = [Panel("expected", asked, place, expected), Panel("got", kinds, place, got)]
    return Picture(title, {kind: KINDS[kind] for kind in SAID}, panels, below, ("rank", column))


def compared(name: str, found: Paths, right: Paths, wrong: Sequence[tuple], close: Any) -> Picture | None:
    """Return the picture of an answer's leaves, at least one per rank; None if `name`, as in a Comparison, has no rank.

    found, right: path → array. wrong: paths of the leaves that differ. close(path, a, b): which elements of a leaf are
    within its bound. If each rank has one leaf, it is split into as many chunks as there are ranks.
    """
    place = re.search(r"rank \{(\d+)\}", name)
    if place is None or any(found[path].shape != right[path].shape for path in right):
        return None
    at = int(place[1])
    ranks = sorted({path[at] for path in right})
    rest = list(dict.fromkeys((*path[:at], *path[at + 1 :]) for path in right))
    off = {(*path[:at], *path[at + 1 :]) for path in wrong}
    columns = sorted(sorted(rest, key=lambda one: one not in off)[:COLUMNS], key=rest.index)
    expected, got, kinds, letters = [], [], [], []  # type: ignore[var-annotated]
    for rank in ranks:
        row: list[tuple] = []
        for column in columns:
            path = (*column[:at], rank, *column[at:])
            if path in right:
                pieces = min(len(ranks), COLUMNS, max(right[path].size, 1)) if len(rest) == 1 else 1
                good = np.broadcast_to(close(path, found[path], right[path]), right[path].shape)
                row += zip(
                    *(np.array_split(np.ravel(a), pieces) for a in (right[path], found[path], good)), strict=True
                )
            else:
                row.append(None)
        expected.append([_letter(cell[0], letters) if cell else "" for cell in row])
        got.append(row)
        kinds.append([NOTHING if cell is None else 0 if cell[2].all() else SAID.index("wrong") for cell in row])
    said = [
        [
            "" if cell is None else mine if kind == 0 else _seen(cell, letters)
            for cell, mine, kind in zip(*rows, strict=True)
        ]
        for rows in zip(got, expected, kinds, strict=True)
    ]
    width = max(map(len, kinds))
    if any(len(row) != width for row in kinds):
        return None
    count = sum(SAID.index("wrong") in row for row in kinds)
    title = f"{count} of {len(ranks)} ranks hold{'s' * (count == 1)} unexpected values"
    more = f" {len(rest) - len(columns)} more columns are not shown." if len(rest) > len(columns) else ""
    return holdings(title, expected, said, kinds, LEGEND + more, "chunk" if len(rest) == 1 else "part")


def _letter(content: np.ndarray, letters: list[np.ndarray]) -> str:
    """Return the letter of a content, a new letter if it differs from all earlier ones."""
    number = next((i for i, one in enumerate(letters) if _same(one, content)), len(letters))
    if number == len(letters):
        letters.append(content)
    return LETTERS[number % len(LETTERS)]


def _seen(cell: tuple, letters: list[np.ndarray]) -> str:
    """Return the text and the kind of a wrong cell, given (right, found, which elements are close)."""
    right, content, _ = cell
    if content.size and content.dtype.kind == "f" and np.isnan(content).all():
        return NEVER
    number = next((i for i, one in enumerate(letters) if _same(one, content)), None)
    return OTHER if number is None or _same(right, content) else LETTERS[number % len(LETTERS)]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or "f" not in one.dtype.kind + other.dtype.kind:
        return np.array_equal(one, other)
    return bool(np.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True))
