"""Show the elements that one program of a wrong kernel touched: the one that stored the first wrong element, or
strayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labs_helpers.course.meter import Meter, StrayAccess
from labs_helpers.course.verdict.accesses import Access, accesses_of
from labs_helpers.course.verdict.picture import KINDS, NOTHING, Panel, Picture, axes_of, matrix

BEYOND = 128  # the most rows and columns drawn outside a tensor


@dataclass(frozen=True)
class Call:
    """The last call of an answer that was recorded. meter: None if kernels are compiled."""

    student: Callable
    args: tuple
    kwargs: dict[str, Any]
    meter: Meter | None


CALLS: list[Call] = []  # the last call, for a picture of its mistake


def with_touched(picture: Picture | None, error: BaseException) -> Picture | None:
    """Return `picture` with the loads and stores of one program added, or a new picture for a stray access. The
    answer runs once more for this. Returns `picture` unchanged if kernels are compiled, or if no program stored the
    wrong element."""
    call = CALLS.pop() if CALLS else None
    stray = strayed(error)
    if call is None or call.meter is None or not (picture or stray):
        return picture
    accesses = accesses_of(call.student, *call.args, **call.kwargs)
    if stray and accesses:
        return _of_stray(accesses, stray)
    return _of_wrong(picture, accesses, call.meter) if picture and picture.wrong else picture


def strayed(error: BaseException | None) -> StrayAccess | None:
    """Return the access outside every tensor that caused an error."""
    while error is not None and not isinstance(error, StrayAccess):
        error = error.__cause__ or error.__context__
    return error


def _of_stray(accesses: Sequence[Access], stray: StrayAccess) -> Picture:
    last = accesses[-1]
    where = _places(last)
    inside = "loaded by this program" if last.kind == "load" else "stored by this program"
    known = {kind: KINDS[kind] for kind in ("not touched", inside, "outside the tensor")}
    outside = (where < 0).any(1) | (where >= last.tensor.shape).any(1)
    count = int(outside.sum())
    panel = _panel(last.name, last.tensor, [where])
    if last.tensor.ndim <= 2:
        panel = replace(panel, box=_frame(where[outside].clip(-BEYOND, np.add(last.tensor.shape, BEYOND - 1))))
    title = f"Program {_short(last)} {last.kind}s {count:,} element{'s' * (count != 1)} outside {last.name}"
    return Picture(title, known, [panel], _line(last), axes_of(last.tensor.ndim))


def _of_wrong(picture: Picture, accesses: Sequence[Access], meter: Meter) -> Picture:
    address, at = picture.wrong  # type: ignore[misc]
    storage = meter.storages.get(address)
    names = set(storage.views.values()) if storage else set()
    stores = [one for one in accesses if one.kind == "store" and one.name in names]
    offset = next((_offset(one, at) for one in stores if len(one.tensor.shape) == len(at)), None)
    guilty = next((one for one in stores if offset is not None and (one.offsets[one.mask] == offset).any()), None)
    if guilty is None:
        return picture
    own = [one for one in accesses if one.program == guilty.program and one.grid_size == guilty.grid_size]
    loaded: dict[str, list[Access]] = {}
    for one in own:
        if one.kind == "load" and one.mask.any() and one.name not in names:
            loaded.setdefault(one.name, []).append(one)
    kinds = {**picture.kinds, **{kind: KINDS[kind] for kind in ("not touched", "loaded by this program")}}
    first = len(picture.kinds)
    inputs = [_panel(name, some[0].tensor, list(map(_places, some)), first) for name, some in list(loaded.items())[:3]]
    results = [*picture.panels]
    if len(at) <= 2:
        results = [replace(picture.panels[0], name=guilty.name, box=_frame(_places(guilty)))]
    framed = " (framed: its stores)" if results[0].box else ""
    below = f"{picture.below}Program {_short(guilty)} stores the first wrong element{framed}."
    return replace(picture, kinds=kinds, panels=[*results, *inputs][:5], below=below)


def _offset(access: Access, at: tuple[int, ...]) -> int:
    return sum(i * stride for i, stride in zip(at, access.tensor.stride(), strict=True))


def _places(access: Access) -> np.ndarray:
    """Return the index of each touched element, one row per element and one number per axis; indices may exceed the
    tensor."""
    tensor, shape = access.tensor, access.offsets.shape
    strides, grid = tensor.stride(), access.grid()
    order = sorted(range(tensor.ndim), key=lambda axis: (-strides[axis], tensor.shape[axis] == 1))
    steps = [step for step, size in zip(grid[1], shape, strict=True) if size > 1] if grid else []
    if grid and len(set(steps)) == len(steps) and set(steps) <= set(strides):
        index, block = _index(np.array([grid[0]]), strides, order)[0], np.indices(shape).reshape(len(shape), -1)
        where = np.tile(index, (block.shape[1], 1))
        for axis, step in enumerate(grid[1]):
            if shape[axis] > 1:
                where[:, strides.index(step)] += block[axis]
    else:
        where = _index(access.offsets.ravel(), strides, order)
    return where[access.mask.ravel()]


def _index(offsets: np.ndarray, strides: Sequence[int], order: Sequence[int]) -> np.ndarray:
    found, rest = np.zeros((len(offsets), len(strides)), np.int64), offsets.astype(np.int64)
    for axis in order:
        if strides[axis]:
            found[:, axis], rest = np.divmod(rest, strides[axis])
    return found


def _panel(name: str, tensor: Any, places: Sequence[np.ndarray], first: int = 0) -> Panel:
    """Return the matrix that contains the first of `places`; their elements are of kind first + 1 or, outside, first
    + 2."""
    where = np.concatenate(places)
    lead = where[0, :-2]
    where = where[(where[:, :-2] == lead).all(1)][:, -2:]
    size = np.array(tensor.shape[-2:])
    if len(size) == 1:
        size, where = np.array([1, *size]), np.concatenate([np.zeros_like(where), where], 1)
    low = np.maximum(np.minimum(where.min(0), 0), -BEYOND)
    high = np.minimum(np.maximum(where.max(0) + 1, size), size + BEYOND)
    kinds = np.full(high - low, NOTHING)
    kinds[tuple(slice(-begin, -begin + length) for begin, length in zip(low, size, strict=True))] = first
    where = where[((where >= low) & (where < high)).all(1)]
    outside = ((where < 0) | (where >= size)).any(1)
    kinds[tuple((where - low).T)] = first + 1 + outside
    title = f"{name}[{', '.join(map(str, lead))}]" if len(lead) else name
    return matrix(title, kinds, (int(low[0]), int(low[1])))


def _frame(where: np.ndarray) -> tuple[float, float, float, float]:
    """Return (left, top, width, height) of the area that a block covers in a vector or matrix."""
    where = np.concatenate([np.zeros_like(where), where], 1)[:, -2:] if where.shape[1] == 1 else where
    (top, left), (bottom, right) = where.min(0), where.max(0) + 1
    return float(left), float(top), float(right - left), float(bottom - top)


def _short(access: Access) -> str:
    program = access.program[: max(1, len(access.grid_size))]
    return str(program[0]) if len(program) == 1 else f"({', '.join(map(str, program))})"


def _line(access: Access) -> str:
    return f"Line {access.number}: {access.line}" if access.line else ""
