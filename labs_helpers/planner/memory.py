"""Peak memory of one rank in a training step: states, buckets, gathered blocks, and activations.

Memory use peaks at the beginning of the backward pass, when all activations exist. Gradients stay allocated from step
to step if they are views of buckets or accumulate. If they are freed before each forward pass, the peak is lower by the
gradients, or, with few activations, moves to the end of the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from labs_helpers.planner.accounting import DEFAULT, LAYOUTS, Part, states, total
from labs_helpers.planner.model_size import Model
from labs_helpers.transformer.counts import saved_activations

MEGABYTE = 2**20
ITEMSIZE = 2  # bytes of an activation, also under autocast, which computes products in 16 bits
# Activations that a tensor-parallel rank keeps whole; the rest is split by heads, hidden width, or vocabulary.
WHOLE = ("tokens and targets", "rotary cos and sin", "norm", "norm's output", "mask")


@dataclass(frozen=True)
class Buffers:
    """Memory that collectives need in addition to the states.

    bucket_bytes: size of a gradient bucket; DistributedDataParallel's default is 25 MiB. copies: DDP and ZeRO-1 copy
    gradients into the buckets instead of using views (gradient_as_bucket_view=False, PyTorch's default; also for a
    single flat all-reduce). prefetched: blocks that ZeRO-3 gathers ahead.
    """

    bucket_bytes: int = 25 * MEGABYTE
    copies: bool = False
    prefetched: int = 1

    def __post_init__(self) -> None:
        if self.bucket_bytes < 1 or self.prefetched < 0:
            raise ValueError(
                f"bucket_bytes is {self.bucket_bytes} and prefetched is "
                f"{self.prefetched}; the least are 1 byte and 0 blocks"
            )


def step_memory(
    model: Model,
    stage: str,
    ranks: int,
    layout: str = DEFAULT,
    *,
    tp: int = 1,
    batch: int = 1,
    length: int = 2048,
    attention: str = "sdpa",
    checkpoint: bool = False,
    whole_gradients: bool = False,
    buffers: Buffers = Buffers(),
) -> list[Part]:
    """Return the parts of one rank's peak memory with `ranks` data-parallel × `tp` tensor-parallel ranks.

    batch: sequences of `length` tokens in one forward pass of the tensor-parallel group. attention: as for
    `saved_activations`. checkpoint: each block keeps only its input and is recomputed. Not counted are the allocator's
    rounding and the workspaces of NCCL and cuBLAS (about 1 GB together). Raise the same errors as `states`.
    """
    count = model.per_rank(tp)
    parts = states(count, stage, ranks, layout, whole_gradients)
    if ranks > 1:
        parts += buffer_parts(model, stage, layout, tp, buffers)
    return [*parts, activations(model, layout, tp, batch, length, attention, checkpoint)]


def buffer_parts(model: Model, stage: str, layout: str, tp: int, buffers: Buffers) -> list[Part]:
    sizes, count, block = LAYOUTS[layout], model.per_rank(tp), model.per_block(tp)
    outside = count - model.shape.layers * block  # embedding, output, and last norm: one group, whole during the step
    gradients = sizes.gradients * count
    if stage in ("DDP", "ZeRO-1"):
        return [Part("buckets", gradients, f"{sizes.gradients} Ψ, copies")] if buffers.copies else []
    if stage == "ZeRO-2":
        two = min(2 * buffers.bucket_bytes, gradients)
        return [Part("buckets", two, "2 buckets: one filling, one in flight")]
    buckets = Part("buckets", 2 * sizes.gradients * block, f"2 · {sizes.gradients} · block: one filling, one in flight")
    if stage == "SHARD_GRAD_OP":
        return [buckets, Part("gathered", sizes.parameters * count, f"{sizes.parameters} Ψ")]
    alive = min(1 + buffers.prefetched, model.shape.layers)
    whole = sizes.parameters * (alive * block + outside)
    return [buckets, Part("gathered", whole, f"{sizes.parameters} · ({alive} blocks + embedding and output)")]


def activations(
    model: Model,
    layout: str = DEFAULT,
    tp: int = 1,
    batch: int = 1,
    length: int = 2048,
    attention: str = "sdpa",
    checkpoint: bool = False,
) -> Part:
    """Return the activations kept by a forward pass, and the two float32 gradients of the logits that begin backward.

    Under autocast, include the 16-bit copies of the weights, which it keeps for backward, and the norms' float32
    values. That is a lower bound: for small models on a CPU, it was 5 to 10% below the bytes that autograd saved.
    """
    shape = model.shape
    kept = _kept(model, tp, batch, length, attention)
    logits = kept["log-softmax of the logits"]
    formula = "kept by forward + 2 · 4 B L V"
    held = sum(kept.values()) + 2 * logits
    if checkpoint:
        one = _kept(replace(model, shape=replace(shape, layers=1)), tp, batch, length, attention)
        inside = sum(one.values()) - logits  # of one block during its recomputation, after the loss
        inputs = shape.layers * ITEMSIZE * batch * length * shape.width
        held = inputs + max(inside, 3 * logits)
        formula = "blocks' inputs + one block, or 3 · 4 B L V"
    if layout == "autocast over float32":
        casts = 2 * model.per_rank(tp)
        held += casts + (0 if checkpoint else (2 * shape.layers + 1) * 2 * batch * length * shape.width)
        formula += " + 2 Ψ, casts"
    return Part("activations", held, formula + (" split over tp" if tp > 1 else ""))


def _kept(model: Model, tp: int, batch: int, length: int, attention: str) -> dict[str, float]:
    saved = saved_activations(model.shape, batch, length, ITEMSIZE, attention)
    return {name: size if name in WHOLE else size / tp for name, size in saved.items()}


def peak(parts: list[Part], gradients_freed: bool = False) -> float:
    """Return the bytes at the peak. gradients_freed: `zero_grad(set_to_none=True)` without views that stay."""
    if not gradients_freed:
        return total(parts)
    size = {part.name: part.bytes for part in parts}
    return total(parts) - min(size["gradients"], size["activations"])
