"""Compare ZeRO-3 with tensor parallelism: both cut the weights into N parts; one moves weights, the other activations.

Each step has T tokens: T / N on each rank under ZeRO-3, all T on the group under tensor parallelism. A rank sends:

    ZeRO-3                 (2 P + G) (N − 1) / N                      the same for every T
    tensor parallelism     ((8 layers + 4) A + loss) (N − 1) / N      A = T · width · itemsize: grows with T

Both compute T · FLOPs per token / N per rank, if there are N sequences; ZeRO-3 cannot split a sequence. With 12 layers
· width² parameters and G = P in 16 bits, the curves cross at about 4.5 · width tokens for every N. Sequence parallelism
sends as much as tensor parallelism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.planner.accounting import DEFAULT, GB
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.strategies import EFFICIENCY, ITEMSIZE
from labs_helpers.planner.volume import bytes_sent, step_volume
from labs_helpers.tensor_parallel.traffic import Sent, step_traffic

if TYPE_CHECKING:
    import pandas


class Both(NamedTuple):
    """Bytes sent and FLOPs computed by one rank in a step. FLOPs are those of the busiest rank."""

    tokens: int
    zero3_bytes: int
    tp_bytes: int
    zero3_flops: float
    tp_flops: float

    @property
    def fewer_bytes(self) -> str:
        return "ZeRO-3" if self.zero3_bytes < self.tp_bytes else "tensor parallelism"


def compare(model: Model, ranks: int, sequences: int, length: int, layout: str = DEFAULT) -> Both:
    """Compare both methods for a step of `sequences` × `length` tokens on `ranks` ranks.

    Raise ValueError for fewer than 2 ranks, which share nothing.
    """
    if ranks < 2:
        raise ValueError(f"ranks is {ranks}; sharing a model requires at least 2")
    flops = length * model.flops_per_token(length, causal=True)
    return Both(
        sequences * length,
        bytes_sent(step_volume(model, "ZeRO-3", layout), {"dp": ranks}),
        bytes_sent(_activations(model, ranks, sequences, length), {"tp": ranks}),
        math.ceil(sequences / ranks) * flops,
        sequences * flops / ranks,
    )


def crossing(model: Model, ranks: int, layout: str = DEFAULT) -> float:
    """Return the tokens per step, over all ranks, above which tensor parallelism sends more than ZeRO-3.

    Its bytes are proportional to the tokens, so the crossing is where they reach ZeRO-3's bytes.
    """
    many = 2**20
    at_many = compare(model, ranks, 1, many, layout)
    return at_many.zero3_bytes / at_many.tp_bytes * many


def table(
    model: Model,
    ranks: int,
    sequences: Sequence[int],
    lengths: Sequence[int],
    layout: str = DEFAULT,
    cluster: Cluster | None = None,
    efficiency: float = EFFICIENCY,
) -> pandas.DataFrame:
    """Return one row per batch × length: GB sent, TFLOP per rank, FLOPs per byte sent, and which method sends less.

    With a cluster of `ranks` GPUs, also the milliseconds of compute and of communication without overlap. ZeRO-3 can
    hide its communication; tensor parallelism's runs between the products.
    """
    import pandas

    rows = []
    for number in sequences:
        for length in lengths:
            both = compare(model, ranks, number, length, layout)
            row: dict[str, float | str] = {
                "batch": number,
                "length": length,
                "tokens": both.tokens,
                "ZeRO-3 GB": both.zero3_bytes / GB,
                "TP GB": both.tp_bytes / GB,
                "ZeRO-3 TFLOP": both.zero3_flops / 1e12,
                "TP TFLOP": both.tp_flops / 1e12,
                "ZeRO-3 FLOP/byte": both.zero3_flops / both.zero3_bytes,
                "TP FLOP/byte": both.tp_flops / both.tp_bytes,
                "fewer bytes": both.fewer_bytes,
            }
            if cluster is not None:
                peak = efficiency * cluster.chip.fp16_flops
                row |= {
                    "ZeRO-3 compute ms": 1e3 * both.zero3_flops / peak,
                    "TP compute ms": 1e3 * both.tp_flops / peak,
                    "ZeRO-3 sends ms": 1e3 * _seconds(step_volume(model, "ZeRO-3", layout), cluster, ranks),
                    "TP sends ms": 1e3 * _seconds(_activations(model, ranks, number, length), cluster, ranks),
                }
            rows.append(row)
    return pandas.DataFrame(rows)


def _activations(model: Model, ranks: int, sequences: int, length: int) -> list[Sent]:
    return step_traffic(model.shape, sequences, length, ranks, itemsize=ITEMSIZE)


def _seconds(rows: Sequence[Sent], cluster: Cluster, ranks: int) -> float:
    return sum(row.calls * cluster.seconds(row.operation, row.payload, ranks) for row in rows)
