"""Traffic of data parallelism per step and scheme, as the collectives that one rank calls.

G and P: bytes of all gradients and of all parameters. N: ranks. Each rank sends per step, over a ring:

    naive, flat, DDP                 all-reduce of G                                    2 G (N − 1) / N
    ZeRO-1, ZeRO-2                   reduce-scatter of G, all-gather of P               (G + P) (N − 1) / N
      with all-reduce                all-reduce of G, all-gather of P                   (2 G + P) (N − 1) / N
    SHARD_GRAD_OP                    all-gather of P, reduce-scatter of G               (P + G) (N − 1) / N
    ZeRO-3                           all-gathers of P forward and backward, r.-s. of G  (2 P + G) (N − 1) / N

If G = P, these are 1, 1, 1.5, 1, and 1.5 times DDP's bytes. The schemes differ in their number of calls and in when
these can run. Over K micro-batches, DDP and ZeRO-1 keep whole gradients and send them once (`no_sync`). ZeRO-2 and the
schemes below it keep shards, so every backward pass sends: (K G + P), K (P + G), and K (2 P + G).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labs_helpers.communication.interface import ring_bytes, ring_messages
from labs_helpers.planner.accounting import DEFAULT, LAYOUTS, STAGES
from labs_helpers.planner.memory import MEGABYTE
from labs_helpers.planner.model_size import Model
from labs_helpers.tensor_parallel.traffic import Sent
from labs_helpers.transformer.counts.known import expect_known

SCHEMES = ("naive", "flat", *STAGES)
REDUCTIONS = ("reduce_scatter", "all_reduce")  # for ZeRO-1 and ZeRO-2


def sends_once(scheme: str) -> bool:
    """Return whether a scheme keeps whole gradients, so that it sends them once per step with accumulation."""
    return "gradients" not in STAGES.get(scheme, ())


def step_volume(
    model: Model,
    scheme: str,
    layout: str = DEFAULT,
    *,
    tp: int = 1,
    accumulate: int = 1,
    no_sync: bool | None = None,
    reduction: str = "reduce_scatter",
    bucket_bytes: int = 25 * MEGABYTE,
) -> list[Sent]:
    """Return the collectives of one step over the group "dp", as one of `tp` tensor-parallel ranks calls them.

    Their phase tells when they can overlap: 'forward', 'backward', or never: 'gradients' (after the backward pass) and
    'update' (after the optimizer's update). accumulate: micro-batches. no_sync: keep gradients whole until the last
    pass and send them once; by default if the scheme keeps them whole anyway. SHARD_GRAD_OP then also gathers once.
    ZeRO-3 is that of the paper; `fully_shard` gathers embedding and output once instead of twice. Raise ValueError for
    unknown names, for accumulate or bucket_bytes below 1, and for ZeRO-2 with no_sync.
    """
    expect_known("scheme", scheme, SCHEMES)
    expect_known("layout", layout, LAYOUTS)
    expect_known("reduction", reduction, REDUCTIONS)
    if min(accumulate, bucket_bytes) < 1:
        raise ValueError(f"accumulate is {accumulate} and bucket_bytes is {bucket_bytes}; both must be at least 1")
    if no_sync and scheme == "ZeRO-2":
        raise ValueError("ZeRO-2 keeps no whole gradients to send later; with no_sync it would be ZeRO-1")
    once = sends_once(scheme) if no_sync is None else no_sync
    passes = 1 if once else accumulate
    sizes, count = LAYOUTS[layout], model.per_rank(tp)
    G, P = round(sizes.gradients * count), round(sizes.parameters * count)
    if scheme == "naive":
        return [
            Sent("dp", "gradients", where, "all_reduce", passes * number, round(sizes.gradients * each))
            for where, number, each in tensors(model, tp)
        ]
    if scheme == "flat":
        return [Sent("dp", "gradients", "all gradients", "all_reduce", passes, G)]
    if scheme == "DDP":
        return _cut("backward", "all gradients", "all_reduce", G, bucket_bytes, passes)
    if scheme in ("ZeRO-1", "ZeRO-2"):
        reduced = _cut("backward", "all gradients", reduction, G, bucket_bytes, passes)
        # In one call, because no compute runs beside it that could hide pieces of it.
        return [*reduced, Sent("dp", "update", "all parameters", "all_gather", 1, P)]
    block = model.per_block(tp)
    parts = [("blocks", model.shape.layers, block), ("the rest", 1, count - model.shape.layers * block)]
    gathers = {"ZeRO-3": ("forward", "backward"), "SHARD_GRAD_OP": ("forward",)}[scheme]
    gathered = 1 if once and scheme == "SHARD_GRAD_OP" else accumulate
    rows = [
        Sent("dp", phase, where, "all_gather", gathered * number, round(sizes.parameters * each))
        for phase in gathers
        for where, number, each in parts
    ]
    return rows + [
        Sent("dp", "backward", where, "reduce_scatter", passes * number, round(sizes.gradients * each))
        for where, number, each in parts
    ]


def tensors(model: Model, tp: int = 1) -> list[tuple[str, int, float]]:
    """Return (name, number, parameters of each per rank) of the transformer's tensors; all but the norms are split."""
    shape = model.shape
    W, kv_width = shape.width, shape.key_value_heads * shape.head_dim
    found = [
        ("embedding, output", 1 if shape.tied else 2, shape.vocabulary * W / tp),
        ("wq, wo", 2 * shape.layers, W * W / tp),
        ("wk, wv", 2 * shape.layers, W * kv_width / tp),
        ("gate, up, down", 3 * shape.layers, W * shape.hidden / tp),
        ("norms", 2 * shape.layers + 1, float(W)),
    ]
    return [(name, number, model.scale * each) for name, number, each in found]


def _cut(phase: str, where: str, operation: str, nbytes: int, bucket_bytes: int, passes: int) -> list[Sent]:
    """Return as many full buckets as there are, and the rest."""
    full, rest = divmod(nbytes, bucket_bytes)
    rows = [(full, bucket_bytes), (1, rest)]
    return [Sent("dp", phase, where, operation, passes * calls, size) for calls, size in rows if calls and size]


def bytes_sent(rows: Iterable[Sent], sizes: Mapping[str, int]) -> int:
    """Return the bytes that one rank sends over the rings. sizes: ranks of each group, such as {"dp": 8}."""
    return sum(row.calls * ring_bytes(row.operation, row.payload, sizes[row.group]) for row in rows)


def messages_sent(rows: Iterable[Sent], sizes: Mapping[str, int]) -> int:
    """Return the number of messages that one rank sends over the rings."""
    return sum(row.calls * ring_messages(row.operation, sizes[row.group]) for row in rows)


def formula(scheme: str, reduction: str = "reduce_scatter", accumulate: int = 1) -> str:
    """Return the bytes per step and rank as a formula in G, P, and N (K: micro-batches), as in the table above."""
    expect_known("scheme", scheme, SCHEMES)
    K = "K " if accumulate > 1 else ""
    if scheme in ("naive", "flat", "DDP"):
        return "2 G (N − 1) / N"
    if scheme in ("ZeRO-1", "ZeRO-2"):
        gradients = ("2 " if reduction == "all_reduce" else "") + ("" if scheme == "ZeRO-1" else K) + "G"
        return f"({gradients} + P) (N − 1) / N"
    return f"{K}({'2 ' if scheme == 'ZeRO-3' else ''}P + G) (N − 1) / N"
