"""Lists of gradients: drawn, averaged in float64, and what the ranks returned held against that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.trees import Comparison, Difference, rounded

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


def comparison_of_means() -> Comparison:
    """A comparison of lists with a mean per gradient, on each rank. A sum is off by a few roundings."""
    return Comparison("rank {0}'s mean {1}", bound=rounded(16), slack=1e-4, otherwise=(_roughly,), advice=ADVICE)


def _roughly(difference: Difference) -> str:
    near = all(np.abs(a - b).max(initial=0) <= np.abs(b).max(initial=0) / 64 for a, b in difference.pairs)
    return FEWER_BITS if near else ""
