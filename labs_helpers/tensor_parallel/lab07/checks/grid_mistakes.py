"""The indices, communicators and parts of a layer that common mistakes give in exercise 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Mistakes = Sequence[tuple[str, Callable]]
FIRST = "ranks 0 to mp_size − 1 hold the first copy of the model, so their mp_idx differ and their dp_idx is 0"
HEADS = "q, k and v are split on the output dimension, so a rank computes whole heads"
TAKES = (
    "fc_o is split on the input dimension: it takes attention's output for the rank's own heads, in_dim / mp_size "
    "features; a weight split on the output dimension would need all features"
)
AMONG = "a layer is split over the mp_size ranks of a model, but this divides by"
SAME = "both sizes are the same part; the dimension that is not split stays whole"
INDICES: Mistakes = (  # functions of (rank, mp_size, dp_size) → (mp_idx, dp_idx)
    (f"mp_idx and dp_idx are exchanged, or % and // are: {FIRST}", lambda r, p, d: (r // p, r % p)),
    (f"dp_idx varies fastest, but mp_idx should: {FIRST}", lambda r, p, d: (r // d, r % d)),
    ("% and // use dp_size, but a model has mp_size ranks", lambda r, p, d: (r % d, r // d)),
    (
        "mp_idx is computed with //, which counts models; it is the remainder, rank % mp_size",
        lambda r, p, d: (r // p, r // p),
    ),
    ("mp_idx is computed with dp_size; it is rank % mp_size", lambda r, p, d: (r % d, r // p)),
    ("mp_idx is computed as rank // dp_size; it is rank % mp_size", lambda r, p, d: (r // d, r // p)),
    ("mp_idx is set to rank; it is rank % mp_size", lambda r, p, d: (r, r // p)),
    ("mp_idx is counted from 1; it starts at 0", lambda r, p, d: (r % p + 1, r // p)),
    (
        "dp_idx is computed with %, which gives the index within a model; it is rank // mp_size",
        lambda r, p, d: (r % p, r % p),
    ),
    ("dp_idx is computed with dp_size; it is rank // mp_size", lambda r, p, d: (r % p, r // d)),
    ("dp_idx is computed as rank % dp_size; it is rank // mp_size", lambda r, p, d: (r % p, r % d)),
    ("dp_idx is set to rank; it is rank // mp_size", lambda r, p, d: (r % p, r)),
    ("dp_idx is counted from 1; it starts at 0", lambda r, p, d: (r % p, r // p + 1)),
    ("both are counted from 1; they start at 0", lambda r, p, d: (r % p + 1, r // p + 1)),
    ("mp_idx runs in reverse order; rank 0 has mp_idx 0", lambda r, p, d: (p - 1 - r % p, r // p)),
)


class Grid(NamedTuple):
    mp_size: int
    dp_size: int

    def __str__(self) -> str:
        return f"mp {self.mp_size} × dp {self.dp_size}"

    @property
    def ranks(self) -> range:
        return range(self.mp_size * self.dp_size)

    def of_all(self, function: Callable) -> list:
        """Return function(rank, mp_size, dp_size) for each rank."""
        return [function(rank, *self) for rank in self.ranks]

    def split(self, function: Callable) -> list[tuple[int, ...]]:
        """Return the ranks of each rank's communicator in order; the function maps a rank to its (color, key)."""
        asked = self.of_all(function)
        ordered = sorted(self.ranks, key=lambda rank: asked[rank][1])
        return [tuple(other for other in ordered if asked[other][0] == asked[rank][0]) for rank in self.ranks]

    def groups(self, name: str) -> list[tuple[int, ...]]:
        """Return the ranks of each rank's mp_comm or dp_comm."""
        return self.split(RIGHT[name])

    def part(self, layer: str, in_dim: int, out_dim: int) -> tuple[int, int]:
        mp_size = self.mp_size
        return (in_dim // mp_size, out_dim) if layer == "fc_o" else (in_dim, out_dim // mp_size)


RIGHT = {"mp_comm": lambda r, p, d: (r // p, r % p), "dp_comm": lambda r, p, d: (r % p, r // p)}


def group_mistakes(name: str) -> Mistakes:
    """Return mistakes as functions (rank, mp_size, dp_size) → Split's (color, key). name: mp_comm or dp_comm."""
    shared, key, other = ("dp_idx", "mp_idx", "dp_comm") if name == "mp_comm" else ("mp_idx", "dp_idx", "mp_comm")
    right = RIGHT[name]
    exchanged = (
        f"this is its {other}: the two communicators are exchanged, or the arguments of Split. The color is {shared}, "
        f"which the ranks of one {name} share, and the key is {key}, their order. Name the arguments: Split(color=…, "
        "key=…)"
    )
    everyone = f"it contains all ranks; Split's color has to differ between groups, like {shared}"
    alone = f"each rank is alone in it: its color differs on every rank, or it splits {other} instead of comm"
    reverse = f"its ranks are in reverse order; key is {key} and orders them, lowest first"
    return (
        (exchanged, RIGHT[other]),
        (everyone, lambda r, p, d: (0, r)),
        (everyone, lambda r, p, d: (0, r % p)),
        (alone, lambda r, p, d: (r, 0)),
        (reverse, lambda r, p, d: (right(r, p, d)[0], -r)),
        (f"its color is rank % dp_size; it should be {shared}", lambda r, p, d: (r % d, r)),
        (f"its color is rank // dp_size; it should be {shared}", lambda r, p, d: (r // d, r)),
    )


def part_mistakes(layer: str) -> Mistakes:
    """Return mistakes as functions (mp_size, dp_size, in_dim, out_dim) → (part_in_dim, part_out_dim)."""
    is_o = layer == "fc_o"

    def instead(part: Callable) -> Callable:
        """Replace the part of the split dimension by part(that dimension, the other, mp_size, dp_size)."""
        return lambda p, d, *dims: (part(*dims, p, d), dims[1]) if is_o else (dims[0], part(*dims[::-1], p, d))

    return (
        (TAKES, lambda p, d, i, o: (i, o // p)) if is_o else (HEADS, lambda p, d, i, o: (i // p, o)),
        ("both dimensions are split; split only one of them", lambda p, d, i, o: (i // p, o // p)),
        (f"nothing is split; {TAKES if is_o else HEADS}", lambda p, d, i, o: (i, o)),
        (
            "the two are exchanged: (…, part_in_dim, part_out_dim)",
            lambda p, d, i, o: Grid(p, d).part(layer, i, o)[::-1],
        ),
        ("the part is computed from the other dimension's size", instead(lambda mine, other, p, d: other // p)),
        (f"{AMONG} dp_size", instead(lambda mine, other, p, d: mine // d)),
        (f"{AMONG} the number of all ranks", instead(lambda mine, other, p, d: mine // (p * d))),
        (SAME, lambda p, d, i, o: (i // p, i // p)),
        (SAME, lambda p, d, i, o: (o // p, o // p)),
        (
            "the part of the split dimension is returned for the other dimension",
            lambda p, d, i, o: (i, i // p) if is_o else (o // p, o),
        ),
    )
