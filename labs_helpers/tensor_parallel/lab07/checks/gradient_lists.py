"""Lists of gradients: drawn, averaged in float64, and what the ranks returned held against that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.tensor_parallel.lab07.checks.rank_tensors import is_near, off_by

Gradients = list[Tensor]
ADVICE = (
    "two ranks with gradients [1, 2] and [3]: what does the vector hold on each, what comes back, and where is it cut?"
)
NOT_CUT = "the vector is not cut into the gradients yet"
LAZY = "list(…) makes a list of it"
CONVERTED = "it was converted, or a NumPy array of another dtype is in between; the gradients are float32"
FEWER_BITS = "a step of it has fewer bits than float32, as bfloat16 and float16 have"


def draw(shapes: Sequence[tuple], seed: int) -> Gradients:
    """A rank's gradients, normally distributed; those of shape (2,) are zero. seed: its rank. Matrices are transposed
    in memory on even ranks, cubes permuted, and a vector at the end has gaps."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(shape, generator=generator) * (shape != (2,)) for shape in shapes]
    if seed % 2 == 0:
        made = [one.t().contiguous().t() if one.ndim == 2 else one for one in made]
    made = [one.permute(2, 0, 1).contiguous().permute(1, 2, 0) if one.ndim == 3 else one for one in made]
    if made[-1].ndim == 1:
        made[-1] = made[-1].repeat_interleave(2)[::2]
    return made


def as_means(of_ranks: Sequence[Gradients]) -> Gradients:
    """In float64."""
    return [torch.stack([one.double() for one in same]).mean(0) for same in zip(*of_ranks, strict=True)]


def expect_form(case: str, found: Sequence, gradients: Sequence[Tensor]) -> None:
    """Raises Wrong unless each rank returned a list of float32 tensors in the shapes of `gradients`."""
    shapes = [tuple(one.shape) for one in gradients]
    for rank, means in enumerate(found):
        if not isinstance(means, list | tuple):
            kind, cause = f"a {type(means).__name__}", LAZY if hasattr(means, "__next__") else ""
            if means is None:
                kind, cause = "None", "the result is not returned"
            elif isinstance(means, Tensor):
                kind, cause = f"a tensor of shape {tuple(means.shape)}", NOT_CUT
            raise Wrong(case, f"rank {rank} returned {kind}; a list of tensors is asked for", cause=cause)
        for i, one in enumerate(means):
            if not isinstance(one, Tensor):
                kind = type(one).__name__
                cause = "torch.from_numpy makes a tensor of an array" * (kind == "ndarray")
                raise Wrong(case, f"rank {rank}'s list has a {kind} at {i}; tensors are asked for", cause=cause)
        own = [tuple(one.shape) for one in means]
        if own != shapes:
            some = f"{len(own)} tensor{'s' * (len(own) != 1)}"
            found_here = f"rank {rank} returned {some}, expected {len(shapes)}, one per gradient"
            if len(own) == len(shapes):
                i = next(i for i, shape in enumerate(shapes) if own[i] != shape)
                found_here = f"rank {rank}'s mean {i} has shape {own[i]}, expected {shapes[i]}"
            raise Wrong(case, found_here, cause=likely(_other_shapes(gradients), own.__eq__))
        for i, one in enumerate(means):
            if one.dtype != torch.float32:
                raise Wrong(case, f"rank {rank}'s mean {i} is {one.dtype}, expected torch.float32", cause=CONVERTED)


def _other_shapes(gradients: Sequence[Tensor]):
    """Candidate causes: their answers are the shapes of the tensors that were returned."""
    shapes = [tuple(one.shape) for one in gradients]
    sizes = [one.numel() for one in gradients]
    flat = "the parts of the vector do not have the gradients' shapes yet: reshape(gradient.shape)"
    yield NOT_CUT, [(sum(sizes),)]
    yield flat, [(size,) for size in sizes]
    yield "the means are in the reverse order of the gradients", shapes[::-1]
    dropped = "squeeze drops dimensions of size 1; they belong to a gradient's shape as all others do"
    yield dropped, [tuple(size for size in shape if size != 1) for shape in shapes]
    yield dropped, [() if size == 1 else shape for shape, size in zip(shapes, sizes, strict=True)]
    swapped = "the two dimensions of matrices are swapped"
    yield swapped, [shape[::-1] if len(shape) == 2 else shape for shape in shapes]
    out = "a gradient {} is left out; it has its place in the list, too"
    yield out.format("without elements"), [tuple(one.shape) for one in gradients if one.numel()]
    yield out.format("that is 0"), [tuple(one.shape) for one in gradients if one.any()]


def expect_means(
    case: str, found, right, groups: Sequence[Sequence[Gradients]], causes: Callable, passed: list
) -> None:
    """Raises Wrong unless each rank's list is `right`, in float64, up to rounding.

    groups: of each data-parallel group its ranks' gradients. causes(): their answers are a list for each rank. passed:
    the causes of earlier cases, to which those of this one are added.
    """
    bounds = [_bounds(groups[rank % len(groups)]) for rank in range(len(found))]

    def fits(answer, wanted=found) -> bool:
        return all(
            is_near(*one)
            for parts in zip(wanted, answer, bounds, strict=True)
            for one in zip(*parts, strict=True)
            if one[0].numel()
        )

    for rank in range(len(found)):
        for i, (mine, one, bound) in enumerate(zip(found[rank], right[rank], bounds[rank], strict=True)):
            off = off_by(mine, one, bound)
            if not bool((off > 0).any()):
                continue
            at = tuple(int(k) for k in torch.unravel_index(off.argmax(), off.shape)) if off.ndim else ()
            where = f"rank {rank}'s mean {i}" + (f", element {list(at)}," if at else "")
            cause = likely(still_possible(causes(), passed), fits)
            if not cause and _nearly(found, right):
                cause = FEWER_BITS
            raise Wrong(case, f"{where} is {mine[at]:.7g}, expected {one[at]:.7g}", cause=cause, advice=ADVICE)
    passed.append((causes(), lambda answer: fits(answer, right)))


def _bounds(of_ranks: Sequence[Gradients]) -> Gradients:
    """Of a sum of as many float32 numbers as there are ranks, and of its division."""
    size = len(of_ranks)
    sums = [torch.stack([one.double().abs() for one in same]).mean(0) for same in zip(*of_ranks, strict=True)]
    return [(size + 3) * 2.0**-24 * one for one in sums]


def _nearly(found, right) -> bool:
    pairs = [one for parts in zip(found, right, strict=True) for one in zip(*parts, strict=True) if one[0].numel()]
    return all(bool((mine.double() - one).abs().max() <= one.abs().max() / 64) for mine, one in pairs)
