"""Make the records of memory allocators that exercise 4 of lab 11 reads."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """A line that allocates blocks: in each step blocks of the bytes sizes(step). At the step's end its newest
    kept(step) blocks are alive; it frees older ones, the oldest first."""

    sizes: Callable[[int], Sequence[int]]
    kept: Callable[[int], int]


def timeline(steps: int, lines: Mapping[str, Line]) -> list[tuple]:
    """Return the events of an allocator, as `find_leak` takes them. Blocks get the lowest free id."""
    events: list[tuple] = []
    blocks: dict[str, list[int]] = {place: [] for place in lines}
    free = list(range(sum(len(line.sizes(step)) for line in lines.values() for step in range(steps))))
    for step in range(steps):
        for place, line in lines.items():
            for nbytes in line.sizes(step):
                blocks[place].append(heapq.heappop(free))
                events.append(("alloc", step, blocks[place][-1], nbytes, place))
        for place, line in lines.items():
            while len(blocks[place]) > line.kept(step):
                heapq.heappush(free, number := blocks[place].pop(0))
                events.append(("free", step, number))
    return events


def live_at_ends(events: Sequence[tuple], steps: int) -> dict[str, list[int]]:
    """Return place → its live bytes at the end of each step."""
    found: dict[str, list[int]] = {}
    blocks: dict[int, tuple[int, str]] = {}
    for kind, step, number, *block in events:
        if kind == "alloc":
            blocks[number] = (block[0], block[1])
        nbytes, place = blocks[number]
        ends = found.setdefault(place, [0] * steps)
        ends[step:] = [end + (nbytes if kind == "alloc" else -nbytes) for end in ends[step:]]
    return found
