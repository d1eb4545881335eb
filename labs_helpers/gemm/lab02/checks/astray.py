"""Find the first load or store of a wrong kernel whose block is not the one that its program needs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labs_helpers.course.verdict.accesses import Access, accesses_of

# The axes of each tensor. Programs divide M and N into tiles; each program walks along K.
AXES = {"a_ptr": "MK", "b_ptr": "KN", "c_ptr": "MN", "d_ptr": "MN", "bias_ptr": "N", "x_ptr": "MN", "y_ptr": "MN"}
OUTPUTS = {"d_ptr", "y_ptr"}
NEEDED = "are needed."
WORD = {"M": "row", "N": "column", "K": "k"}


def first_astray(student, blocks: Mapping[str, int], *args, **kwargs) -> str:
    """Describe the first access of `student(*args, **kwargs)` to a wrong block in one sentence, or return ''.

    blocks: the values of BLOCK_M, BLOCK_N and, if the kernel has a K loop, BLOCK_K.
    """
    walks: dict[tuple, list[Access]] = {}
    accesses = accesses_of(student, *args, **kwargs)
    own = {tensor.untyped_storage().data_ptr() for tensor in args}
    inputs = [access for access in accesses if access.name in set(AXES) - OUTPUTS]
    if any(access.kind == "load" and access.tensor.untyped_storage().data_ptr() not in own for access in inputs):
        return ""  # the function passed other tensors to the kernel
    for access in accesses:
        if access.name in AXES:
            walks.setdefault((access.kind, access.name, access.number, access.program), []).append(access)
    if accesses and accesses[-1].kind == "load":  # the answer raised, so the last program is incomplete
        unfinished = [walk for walk in walks.values() if walk[0].program == accesses[-1].program]
    else:
        unfinished = []
    grid = _grid(accesses, blocks)
    tests = (_target, _block, _steps, *(() if grid is None else (_origin, _along_k)), _masks)
    for test in tests:
        for walk in walks.values():
            said = test(walk, blocks)
            if said and not (said.endswith(NEEDED) and walk in unfinished):
                return grid or said
    return grid or ""


def _target(walk: list[Access], blocks) -> str:
    access = walk[0]
    output = access.name in OUTPUTS
    if output == (access.kind == "store"):
        return ""
    return f"line {access.number} {access.kind}s {'from' if output else 'to'} {access.name}."


def _grid(accesses: list[Access], blocks) -> str | None:
    """Describe what is wrong with the grid; '' if nothing is, None if it does not map program (i, j) to tile (i, j)."""
    outputs = [access for access in accesses if AXES.get(access.name) == "MN"]
    if not outputs:
        return ""
    (M, N), grid = outputs[0].tensor.shape, tuple(outputs[0].grid_size)
    wanted = -(-M // blocks["BLOCK_M"]), -(-N // blocks["BLOCK_N"])
    if grid[:2] == wanted:
        return ""
    if grid in (wanted[::-1], (wanted[0] * wanted[1],)):
        return None
    return (
        f"the grid has {' × '.join(map(str, grid))} programs; {M}×{N} elements in tiles of "
        f"{blocks['BLOCK_M']}×{blocks['BLOCK_N']} need {wanted[0]} × {wanted[1]}."
    )


def _name(access: Access) -> str:
    title = access.name.removesuffix("_ptr")
    return title if len(title) > 1 else title.upper()


def _line(access: Access) -> str:
    return f"line {access.number} {access.kind}s"


def _axes(access: Access, blocks) -> str | None:
    """Return the axes of the accessed block in order, reversed if the answer transposed it; None if neither fits."""
    axes = AXES[access.name]
    shape = tuple(size for size in access.offsets.shape if size > 1)
    for order in (axes, axes[::-1]):
        if shape == tuple(size for axis in order if (size := blocks[f"BLOCK_{axis}"]) > 1):
            return order
    return None


def _squeezed(access: Access) -> tuple[int, tuple[int, ...]] | None:
    """Return (origin, steps) of the block without its axes of length 1."""
    grid = access.grid()
    if grid is None:
        return None
    return grid[0], tuple(step for step, size in zip(grid[1], access.offsets.shape, strict=True) if size > 1)


def _block(walk: list[Access], blocks) -> str:
    access = walk[0]
    if _axes(access, blocks):
        return ""
    axes = AXES[access.name]
    if len(axes) > len(access.offsets.shape) and len(walk) > 1:  # for example row by row
        return ""
    if axes == "N" and access.offsets.size == blocks["BLOCK_M"]:
        return f"{_line(access)} {_name(access)} along the rows; element j belongs to column j."
    shape = "×".join(map(str, access.offsets.shape)) or "1"
    wanted = " × ".join(f"BLOCK_{axis}" for axis in axes)
    here = "×".join(str(blocks[f"BLOCK_{axis}"]) for axis in axes)
    return f"{_line(access)} a block of {shape} elements of {_name(access)}, where {wanted} is {here}."


def _steps(walk: list[Access], blocks) -> str:
    access = walk[0]
    axes, grid = _axes(access, blocks), _squeezed(access)
    if axes is None or grid is None or len(grid[1]) != len(axes):
        return ""
    strides = dict(zip(AXES[access.name], access.tensor.stride(), strict=True))
    wanted = tuple(strides[axis] for axis in axes)
    if grid[1] == wanted or (len(set(access.offsets.shape)) == 1 and grid[1] == wanted[::-1]):
        return ""
    if len(axes) == 1:
        return f"{_line(access)} every {grid[1][0]}th element of {_name(access)}, whose elements are contiguous."
    swapped = ": the two are swapped" if grid[1] == wanted[::-1] else ""
    return (
        f"line {access.number} steps through {_name(access)} by {grid[1][0]} per {WORD[axes[0]]} and by {grid[1][1]} "
        f"per {WORD[axes[1]]}, where {_name(access)}'s strides are {wanted[0]} and {wanted[1]}{swapped}."
    )


def _begins(access: Access, blocks) -> dict[str, int] | None:
    """Return axis → the index at which the block begins, or None if the strides do not determine it."""
    axes, grid = _axes(access, blocks), _squeezed(access)
    strides = dict(zip(AXES[access.name], access.tensor.stride(), strict=True))
    if axes is None or grid is None or grid[0] < 0 or 0 in strides.values():
        return None
    if grid[1] != tuple(strides[axis] for axis in axes):  # a square block, transposed or with swapped strides
        return None
    rest, found = grid[0], {}
    for axis in sorted(strides, key=lambda axis: -strides[axis]):
        found[axis], rest = divmod(rest, strides[axis])
    return found if rest == 0 else None


def _origin(walk: list[Access], blocks) -> str:
    access = walk[0]
    begins = [_begins(each, blocks) for each in walk]
    if None in begins:
        return ""
    where = f"program {access.program[:2]}"
    for axis, program in (("M", 0), ("N", 1)):
        index = begins[0].get(axis)
        wanted = access.program[program] * blocks[f"BLOCK_{axis}"]
        if index is not None and index != wanted:
            return (
                f"{where}: {_line(access)} {_name(access)} from {WORD[axis]} {index} on; its tile begins at "
                f"{WORD[axis]} {wanted}."
            )
    return ""


def _along_k(walk: list[Access], blocks) -> str:
    access = walk[0]
    begins = [_begins(each, blocks) for each in walk]
    if None in begins or "K" not in begins[0]:
        return ""
    found, block, where = [each["K"] for each in begins], blocks["BLOCK_K"], f"program {access.program[:2]}"
    size = access.tensor.shape[AXES[access.name].index("K")]
    wanted = list(range(0, size, block))
    if found == wanted:
        return ""
    if len(found) > 1 and len(set(found)) == 1:
        return f"{where} loads the same block of {_name(access)} in every step: k does not advance."
    for step, (k, right) in enumerate(zip(found, wanted, strict=False)):
        if k != right:
            return (
                f"{where}, step {step} along K: {_line(access)} {_name(access)} from k = {k} on; this step begins at "
                f"k = {right}."
            )
    if len(found) < len(wanted):
        steps = f"{len(found)} step{'s' * (len(found) != 1)}"
        return f"{where} makes {steps} of BLOCK_K = {block} along K = {size}; {len(wanted)} {NEEDED}"
    return f"{where} makes more than the {len(wanted)} steps of BLOCK_K = {block} that K = {size} needs."


def _masks(walk: list[Access], blocks) -> str:
    for access in walk:
        axes, begins = _axes(access, blocks), _begins(access, blocks)
        if axes is None or begins is None:
            continue
        shape = tuple(size for size in access.offsets.shape if size > 1)
        mask, inside = access.mask.reshape(shape), np.ones(shape, bool)
        indices = dict(zip(axes, np.indices(shape), strict=True)) if len(axes) == len(shape) else {}
        for axis, index in indices.items():
            index += begins[axis]
            inside &= index < access.tensor.shape[AXES[access.name].index(axis)]
        for wrong, said in ((mask & ~inside, "lets through"), (inside & ~mask, "leaves out")):
            if indices and wrong.any():
                if access.mask.all() and "mask" not in access.line:
                    place = _place(wrong, indices, access)
                    return f"{_line(access)} {_name(access)} without a mask and reaches {place}."
                place = "a whole block" if wrong.all() else _place(wrong, indices, access)
                return f"{_line(access)} {_name(access)} with a mask that {said} {place}."
    return ""


def _place(wrong: np.ndarray, indices: dict[str, np.ndarray], access: Access) -> str:
    """Describe the first wrong element, like 'row 100, where A has 0 to 99', along the axis that it is wrong on."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    sizes = dict(zip(AXES[access.name], access.tensor.shape, strict=True))
    outside = [axis for axis in indices if indices[axis][at] >= sizes[axis]]
    whole = [axis for axis in indices if wrong[indices[axis] == indices[axis][at]].all()]
    axis = (outside or whole or list(indices))[0]
    return (
        f"{WORD[axis]} {'= ' * (axis == 'K')}{int(indices[axis][at])}, where {_name(access)} has 0 to {sizes[axis] - 1}"
    )
