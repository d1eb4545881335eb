"""Activation checkpointing in segments: only a segment's input stays in memory, and the backward pass computes the
segment again (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).

PyTorch ends this second pass at the last tensor that it needs, which omits a segment's last product.
`torch.utils.checkpoint.set_checkpoint_early_stop(False)` around the forward pass makes it as long as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from labs_helpers.transformer.model import Transformer


def checkpoint_segments(model: Transformer, sizes: Sequence[int]) -> None:
    """Make the model checkpoint its blocks in segments of `sizes` blocks, from its next forward pass on.

    `[]` ends that. Parameters, their names and the results do not change. Call it before torch.compile. ValueError for
    sizes that are not positive integers, or do not add up to the model's layers.
    """
    check_sizes(sizes, len(model.blocks))
    model.segments = list(sizes)


def check_sizes(sizes: Sequence[int], layers: int) -> None:
    """Raise ValueError unless `sizes` is empty or consists of positive integers that add up to `layers`."""
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"a segment's size is {size!r}, not an integer of 1 or more")
    if sizes and sum(sizes) != layers:
        raise ValueError(f"the segments {list(sizes)} add up to {sum(sizes)}, and the model has {layers} layers")


def equal_segments(layers: int, segments: int) -> list[int]:
    """Return the sizes of `segments` segments, as equal as possible, the larger ones first; [] for 0 segments.

    ValueError for a number below 0 or above `layers`.
    """
    if not 0 <= segments <= layers:
        raise ValueError(f"segments is {segments}; {layers} layers make 0 to {layers}")
    size, larger = divmod(layers, segments or 1)
    return ([size + 1] * larger + [size] * (segments - larger)) if segments else []


def run_segments(blocks: Sequence[Any], sizes: Sequence[int], x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x after all blocks, checkpointed in segments of `sizes`."""
    start = 0
    for size in sizes:
        segment = blocks[start : start + size]

        def run(x: Tensor, cos: Tensor, sin: Tensor, segment: Sequence[Any] = segment) -> Tensor:
            for block in segment:
                x = block(x, cos, sin)
            return x

        # Nothing in a block is random, and the generator's state cannot be read while a CUDA graph is captured.
        x = checkpoint(run, x, cos, sin, use_reentrant=False, preserve_rng_state=False)
        start += size
    return x
