"""What common mistakes make of a rank's place, its communicators and its part of a layer in exercise 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Mistakes = Sequence[tuple[str, Callable]]
FIRST = "ranks 0 to mp_size − 1 hold the first copy of the model: their mp_idx differ, their dp_idx is 0"
HEADS = "q, k and v are split on the output dimension, so that a rank computes whole heads"
TAKES = (
    "fc_o is split on the input dimension: it takes what attention made of a rank's own heads, in_dim / mp_size of the "
    "features, and a weight split on the output dimension would need all of them"
)
AMONG = "a layer is split among the mp_size ranks of a model; here it is divided by"
SAME = "both are the same part; the dimension that is not split stays whole"
INDICES: Mistakes = (  # functions of (rank, mp_size, dp_size) → (mp_idx, dp_idx)
    (f"mp_idx and dp_idx are exchanged, or % and //: {FIRST}", lambda r, p, d: (r // p, r % p)),
    (f"dp_idx runs fastest; mp_idx has to: {FIRST}", lambda r, p, d: (r // d, r % d)),
    ("% dp_size and // dp_size: a model has mp_size ranks", lambda r, p, d: (r % d, r // d)),
    ("mp_idx is rank % mp_size, the remainder; // counts models", lambda r, p, d: (r // p, r // p)),
    ("mp_idx is rank % mp_size; here dp_size stands in its place", lambda r, p, d: (r % d, r // p)),
    ("mp_idx is rank % mp_size; here it is rank // dp_size", lambda r, p, d: (r // d, r // p)),
    ("mp_idx is rank % mp_size; here it is rank", lambda r, p, d: (r, r // p)),
    ("mp_idx counts from 0; here from 1", lambda r, p, d: (r % p + 1, r // p)),
    ("dp_idx is rank // mp_size; % is the place within a model", lambda r, p, d: (r % p, r % p)),
    ("dp_idx is rank // mp_size; here dp_size stands in its place", lambda r, p, d: (r % p, r // d)),
    ("dp_idx is rank // mp_size; here it is rank % dp_size", lambda r, p, d: (r % p, r % d)),
    ("dp_idx is rank // mp_size; here it is rank", lambda r, p, d: (r % p, r)),
    ("dp_idx counts from 0; here from 1", lambda r, p, d: (r % p, r // p + 1)),
    ("both count from 0; here from 1", lambda r, p, d: (r % p + 1, r // p + 1)),
    ("mp_idx is in reverse order: rank 0 has 0", lambda r, p, d: (p - 1 - r % p, r // p)),
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
        """Of each rank: function(rank, mp_size, dp_size)."""
        return [function(rank, *self) for rank in self.ranks]

    def split(self, function: Callable) -> list[tuple[int, ...]]:
        """For each rank the ranks of its communicator, in their order; the function returns its (color, key)."""
        asked = self.of_all(function)
        ordered = sorted(self.ranks, key=lambda rank: asked[rank][1])
        return [tuple(other for other in ordered if asked[other][0] == asked[rank][0]) for rank in self.ranks]

    def groups(self, name: str) -> list[tuple[int, ...]]:
        """For each rank the ranks of its mp_comm or dp_comm."""
        return self.split(RIGHT[name])

    def part(self, layer: str, in_dim: int, out_dim: int) -> tuple[int, int]:
        mp_size = self.mp_size
        return (in_dim // mp_size, out_dim) if layer == "fc_o" else (in_dim, out_dim // mp_size)


RIGHT = {"mp_comm": lambda r, p, d: (r // p, r % p), "dp_comm": lambda r, p, d: (r % p, r // p)}


def group_mistakes(name: str) -> Mistakes:
    """Functions of (rank, mp_size, dp_size) → Split's (color, key). name: mp_comm or dp_comm."""
    shared, key, other = ("dp_idx", "mp_idx", "dp_comm") if name == "mp_comm" else ("mp_idx", "dp_idx", "mp_comm")
    right = RIGHT[name]
    exchanged = (
        f"this is its {other}: the two are exchanged, or this Split's arguments; its color is {shared}, which the "
        f"ranks of one {name} share, and its key {key}, their order. By keyword, Split(color=…, key=…), nothing is "
        "mixed up"
    )
    everyone = f"all ranks are in it: Split's color has to differ from group to group, as {shared} does"
    alone = f"each rank is alone in it: its color is another on each rank, or it is a Split of {other} and not of comm"
    reverse = f"its ranks are in reverse order; key orders them, lowest first: {key}"
    return (
        (exchanged, RIGHT[other]),
        (everyone, lambda r, p, d: (0, r)),
        (everyone, lambda r, p, d: (0, r % p)),
        (alone, lambda r, p, d: (r, 0)),
        (reverse, lambda r, p, d: (right(r, p, d)[0], -r)),
        (f"its color is rank % dp_size; it is {shared}", lambda r, p, d: (r % d, r)),
        (f"its color is rank // dp_size; it is {shared}", lambda r, p, d: (r // d, r)),
    )


def part_mistakes(layer: str) -> Mistakes:
    """Functions of (mp_size, dp_size, in_dim, out_dim) → (part_in_dim, part_out_dim)."""
    is_o = layer == "fc_o"

    def instead(part: Callable) -> Callable:
        """With another part of the dimension that is split; part: of (that dimension, the other, mp_size, dp_size)."""
        return lambda p, d, *dims: (part(*dims, p, d), dims[1]) if is_o else (dims[0], part(*dims[::-1], p, d))

    return (
        (TAKES, lambda p, d, i, o: (i, o // p)) if is_o else (HEADS, lambda p, d, i, o: (i // p, o)),
        ("one of the two dimensions is split, not both", lambda p, d, i, o: (i // p, o // p)),
        (f"nothing is split; {TAKES if is_o else HEADS}", lambda p, d, i, o: (i, o)),
        (
            "the two are exchanged: (…, part_in_dim, part_out_dim)",
            lambda p, d, i, o: Grid(p, d).part(layer, i, o)[::-1],
        ),
        ("the part is made of the other dimension's size", instead(lambda mine, other, p, d: other // p)),
        (f"{AMONG} dp_size", instead(lambda mine, other, p, d: mine // d)),
        (f"{AMONG} the number of all ranks", instead(lambda mine, other, p, d: mine // (p * d))),
        (SAME, lambda p, d, i, o: (i // p, i // p)),
        (SAME, lambda p, d, i, o: (o // p, o // p)),
        (
            "the part of one dimension stands in the other's place",
            lambda p, d, i, o: (i, i // p) if is_o else (o // p, o),
        ),
    )
