"""A mesh of ranks with named axes: `mesh["tp"]` is the group of ranks along the axis tp.

In Mesh(world, {"dp": 2, "tp": 3}) the last axis varies fastest: neighboring ranks differ in their tp coordinate.

              tp 0  tp 1  tp 2
        dp 0    0     1     2    ← mesh["tp"] of ranks 0, 1 and 2
        dp 1    3     4     5
                ↑ mesh["dp"] of ranks 0 and 3
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labs_helpers.communication.interface import Communication


def check_sizes(ranks: int, sizes: Mapping[str, int]) -> None:
    """Raise ValueError unless the product of the axes' sizes is the number of ranks."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} is {size!r}, not an integer of 1 or more")
    if (product := math.prod(sizes.values())) != ranks:
        axes, factors = " × ".join(sizes), " × ".join(map(str, sizes.values()))
        raise ValueError(f"{axes} is {factors} = {product}, but there are {ranks} ranks")


def places(sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return each rank's coordinates by axis. sizes: of the axes, from the slowest to the fastest."""
    return [dict(zip(sizes, place, strict=True)) for place in itertools.product(*map(range, sizes.values()))]


def ranks_at(sizes: Mapping[str, int], coordinates: Mapping[str, int]) -> list[int]:
    """Return the ranks that have these coordinates, in ascending order: a line of the mesh if one axis is left out."""
    return [rank for rank, place in enumerate(places(sizes)) if coordinates.items() <= place.items()]


class Mesh(Mapping[str, "Communication"]):
    """The groups of one rank, by axis: `mesh["tp"]` has the ranks that share all its other coordinates.

            mesh = Mesh(connect("mpi", comm), {"dp": 2, "tp": 4})
            mesh["tp"].all_reduce(x)

    sizes: of the axes, from the slowest to the fastest. place: this rank's coordinates, which are its ranks in each
    group. ranks: axis → the ranks of `world` in this rank's group, in the order of their coordinates.

    Every rank of `world` creates it with the same sizes. ValueError: their product is not the number of ranks.
    """

    def __init__(self, world: Communication, sizes: Mapping[str, int]) -> None:
        check_sizes(world.size, sizes)
        self.sizes = dict(sizes)
        self.place = places(sizes)[world.rank]
        others = {name: {axis: at for axis, at in self.place.items() if axis != name} for name in sizes}
        self.ranks = {name: ranks_at(sizes, coordinates) for name, coordinates in others.items()}
        self._groups = world.split(self.ranks)

    def __getitem__(self, name: str) -> Communication:
        if name not in self.sizes:
            raise KeyError(f"this mesh has no axis {name!r}; its axes are {', '.join(self.sizes)}")
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def free(self) -> None:
        """Give the groups back to MPI. Every rank calls it after the last communication."""
        for group in self._groups.values():
            group.free()
