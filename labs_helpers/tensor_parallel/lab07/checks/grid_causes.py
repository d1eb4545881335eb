"""What common mistakes make of a rank's place, its groups and its part of a layer in exercise 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Ranks = tuple[int, ...]  # of the communicator; −1: one that is not in it

SHARED = {  # communicator → what its ranks share, and what orders them
    "mp_comm": ("dp_idx", "mp_idx"),
    "dp_comm": ("mp_idx", "dp_idx"),
}
NAMED = "By keyword, Split(color=…, key=…), nothing is mixed up"
HEADS = "q, k and v are split on the output dimension, so that a rank computes whole heads"
TAKES = (
    "fc_o is split on the input dimension: it takes what attention made of a rank's own heads, in_dim / mp_size of the "
    "features, and a weight split on the output dimension would need all of them"
)


class Grid(NamedTuple):
    mp_size: int
    dp_size: int

    def __str__(self) -> str:
        return f"mp {self.mp_size} × dp {self.dp_size}"

    @property
    def ranks(self) -> range:
        return range(self.mp_size * self.dp_size)

    def indices(self) -> list[tuple[int, int]]:
        """Each rank's (mp_idx, dp_idx)."""
        return [(rank % self.mp_size, rank // self.mp_size) for rank in self.ranks]

    def groups(self, name: str) -> list[Ranks]:
        """For each rank the ranks of its mp_comm or dp_comm, in their order."""
        shared = int(name == "mp_comm")
        places = self.indices()
        return [tuple(other for other in self.ranks if places[other][shared] == place[shared]) for place in places]

    def part(self, layer: str, in_dim: int, out_dim: int) -> tuple[int, int]:
        mp_size = self.mp_size
        return (in_dim // mp_size, out_dim) if layer == "fc_o" else (in_dim, out_dim // mp_size)


def index_causes(grid: Grid) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Candidates: each rank's (mp_idx, dp_idx)."""
    p, d = grid
    by_model = (
        f"with mp_size {p}, ranks 0 to {p - 1} hold the first copy of the model: mp_idx is 0 to {p - 1}, dp_idx 0"
    )
    for cause, place in (
        (f"mp_idx and dp_idx are exchanged, or % and //: {by_model}", lambda rank: (rank // p, rank % p)),
        (f"dp_idx runs fastest; mp_idx has to: {by_model}", lambda rank: (rank // d, rank % d)),
        ("% dp_size and // dp_size: a model has mp_size ranks", lambda rank: (rank % d, rank // d)),
        ("mp_idx is rank % mp_size, the remainder; // counts models", lambda rank: (rank // p, rank // p)),
        ("mp_idx is rank % mp_size; here dp_size stands in its place", lambda rank: (rank % d, rank // p)),
        ("mp_idx is rank % mp_size; here it is rank // dp_size", lambda rank: (rank // d, rank // p)),
        ("mp_idx is rank % mp_size; here it is rank", lambda rank: (rank, rank // p)),
        ("mp_idx counts from 0; here from 1", lambda rank: (rank % p + 1, rank // p)),
        ("dp_idx is rank // mp_size; % is the place within a model", lambda rank: (rank % p, rank % p)),
        ("dp_idx is rank // mp_size; here dp_size stands in its place", lambda rank: (rank % p, rank // d)),
        ("dp_idx is rank // mp_size; here it is rank % dp_size", lambda rank: (rank % p, rank % d)),
        ("dp_idx is rank // mp_size; here it is rank", lambda rank: (rank % p, rank)),
        ("dp_idx counts from 0; here from 1", lambda rank: (rank % p, rank // p + 1)),
        ("both count from 0; here from 1", lambda rank: (rank % p + 1, rank // p + 1)),
        ("mp_idx is in reverse order: rank 0 has 0", lambda rank: (p - 1 - rank % p, rank // p)),
    ):
        yield cause, [place(rank) for rank in grid.ranks]


def group_causes(grid: Grid, name: str) -> Iterator[tuple[str, list[Ranks]]]:
    """Candidates: for each rank the ranks of its `name`."""
    right, places, everyone = grid.groups(name), grid.indices(), tuple(grid.ranks)
    other = next(one for one in SHARED if one != name)
    shared, key = SHARED[name]
    exchanged = (
        f"this is its {other}: the two are exchanged, or this Split's arguments; its color is {shared}, which the "
        f"ranks of one {name} share, and its key {key}, their order. {NAMED}"
    )
    yield exchanged, grid.groups(other)
    yield exchanged, [one[::-1] for one in grid.groups(other)]
    all_of_them = f"all ranks are in it: Split's color has to differ from group to group, as {shared} does"
    yield all_of_them, [everyone for _ in everyone]
    for index in (0, 1):
        ordered = tuple(sorted(everyone, key=lambda rank, index=index: places[rank][index]))
        yield all_of_them, [ordered for _ in everyone]
    alone = f"each rank is alone in it: its color is another on each rank, or it is a Split of {other} and not of comm"
    yield alone, [(rank,) for rank in everyone]
    yield f"its ranks are in reverse order; key orders them, lowest first: {key}", [one[::-1] for one in right]
    d = grid.dp_size
    for formula, color in (
        ("rank % dp_size", [r % d for r in everyone]),
        ("rank // dp_size", [r // d for r in everyone]),
    ):
        groups = [tuple(one for one in everyone if color[one] == color[rank]) for rank in everyone]
        yield f"its color is {formula}; it is {shared}", groups


def part_causes(grid: Grid, layer: str, in_dim: int, out_dim: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Candidates: (part_in_dim, part_out_dim)."""
    p, d, size = grid.mp_size, grid.dp_size, len(grid.ranks)
    is_o = layer == "fc_o"

    def instead(part: int) -> tuple[int, int]:
        """With another part of the dimension that is split."""
        return (part, out_dim) if is_o else (in_dim, part)

    yield (TAKES, (in_dim, out_dim // p)) if is_o else (HEADS, (in_dim // p, out_dim))
    yield "one of the two dimensions is split, not both", (in_dim // p, out_dim // p)
    yield f"nothing is split; {'fc_o is split on the input dimension' if is_o else HEADS}", (in_dim, out_dim)
    yield "the two are exchanged: (…, part_in_dim, part_out_dim)", grid.part(layer, in_dim, out_dim)[::-1]
    yield "the part is made of the other dimension's size", instead((out_dim if is_o else in_dim) // p)
    among = "a layer is split among the mp_size ranks of a model; here it is divided by"
    yield f"{among} dp_size", instead((in_dim if is_o else out_dim) // d)
    yield f"{among} the number of all ranks", instead((in_dim if is_o else out_dim) // size)
    same = "both are the same part; the dimension that is not split stays whole"
    yield same, (in_dim // p, in_dim // p)
    yield same, (out_dim // p, out_dim // p)
    elsewhere = "the part of one dimension stands in the other's place"
    yield elsewhere, (in_dim, in_dim // p) if is_o else (out_dim // p, out_dim)
