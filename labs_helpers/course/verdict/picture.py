"""Pictures of a mistake: matrices of cells that a wrong answer carries, drawn only if a notebook shows it.

    wrong.picture = Picture("12 of 60 elements of D are wrong", {"right": "right", "wrong": "wrong"}, [Panel("D", off)])

A picture computes nothing and contains no right values; a cell says which element is wrong, and how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

NOTHING = -1  # kind of a cell without an element
CELLS, PANELS = 96, 4  # the most cells of a panel along each axis, and the most panels

# The meaning of a cell and its role in the drawing. If elements share a cell, the last kind in this list is shown.
KINDS = {
    "right": "all",
    "stored once": "all",
    "not touched": "skipped tile",
    "not asked for": "skipped tile",
    "loaded by this program": "measured",
    "stored by this program": "measured",
    "stored by several programs": "one",
    "stored several times": "one",
    "loaded too often": "one",
    "never stored": "limit",
    "loaded too rarely": "limit",
    "not finite": "naive",
    "wrong": "wrong",
    "outside the tensor": "wrong",
}


@dataclass(frozen=True)
class Panel:
    """A matrix. kinds: for each cell, the index of its kind in the picture, or NOTHING. place: (left, right, bottom,
    top) in rows and columns of the tensor. texts: written in the cells. box: (left, top, width, height) of a frame."""

    name: str
    kinds: np.ndarray
    place: tuple[float, float, float, float]
    texts: Sequence[Sequence[str]] = ()
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Picture:
    """Panels under a title of one line. kinds: meaning → role, in the order of the panels' numbers. below: a note
    under the panels. axes: the meaning of rows and columns. wrong: (memory address, index) of the first wrong
    element."""

    title: str
    kinds: Mapping[str, str]
    panels: Sequence[Panel]
    below: str = ""
    axes: tuple[str, str] = ("row", "column")
    wrong: tuple[int, tuple[int, ...]] | None = None


def matrix(name: str, kinds: np.ndarray, origin: tuple[int, int] = (0, 0), **rest) -> Panel:
    """Return a panel of a matrix whose first element is `origin`; in a large matrix, one cell shows several
    elements."""
    rows, columns = kinds.shape
    place = (origin[1], origin[1] + columns, origin[0] + rows, origin[0])
    for axis in (0, 1):
        step = -(-kinds.shape[axis] // CELLS)
        if step > 1:
            kinds = np.maximum.reduceat(kinds, range(0, kinds.shape[axis], step), axis)
    return Panel(name, kinds.astype(np.int8), place, **rest)


def elements(name: str, masks: Mapping[str, np.ndarray], tensor, title: str) -> Picture:
    """Return the picture of a tensor with some wrong elements.

    masks: kind → its elements; the first kind is that of all other elements. Each panel is a matrix over the last two
    axes; those with wrong elements come first.
    """
    shape = np.shape(next(iter(masks.values())))
    codes = np.zeros(shape, np.int8)
    for number, mask in enumerate(masks.values()):
        codes[np.asarray(mask, bool)] = number
    at = tuple(map(int, np.unravel_index(int((codes > 0).argmax()), shape))) if shape else ()
    flat = codes.reshape((-1, *shape[-2:]) if len(shape) > 1 else (1, 1, -1))
    first = sorted(range(len(flat)), key=lambda one: (not flat[one].any(), one))
    shown = sorted(first[:PANELS])
    more = f"{len(flat) - len(shown)} more panels are not shown. " if len(flat) > len(shown) else ""
    panels = []
    for one in shown:
        lead = [int(i) for i in np.unravel_index(one, shape[:-2])] if len(shape) > 2 else []
        panels.append(matrix(f"{name}[{', '.join(map(str, lead))}]" if lead else name, flat[one]))
    present = {kind: KINDS[kind] for kind in masks}
    return Picture(title, present, panels, more, axes_of(len(shape)), (tensor.untyped_storage().data_ptr(), at))


def axes_of(dimensions: int) -> tuple[str, str]:
    """Return the meaning of the rows and columns of a tensor's panels."""
    return ("row", "column") if dimensions > 1 else ("", "element")


def picture_of(error: BaseException | None) -> Picture | None:
    """Return the picture of an error, or of the error that caused or preceded it."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if (found := getattr(error, "picture", None)) is not None:
            return found
        seen.append(error)
        error = error.__cause__ or error.__context__
    return None
