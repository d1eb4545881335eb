"""Make the flight recorders' records that exercise 5 of lab 11 reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Collective = tuple[str, str, int]  # group, name, elements
Begun = dict[int, list[tuple[str, int, str, int]]]


def recorded(programs: Mapping[int, Sequence[Collective]], members: Mapping[str, Sequence[int]]) -> Begun:
    """Run programs, rank → its collectives, until every rank has ended or waits; return what each has begun."""
    begun: Begun = {rank: [] for rank in programs}

    def steps_of(rank: int) -> Iterator[None]:
        numbers = dict.fromkeys(members, 0)
        for group, name, elements in programs[rank]:
            numbers[group] += 1
            begun[rank].append(one := (group, numbers[group], name, elements))
            while any(one not in begun.get(other, ()) for other in members[group]):
                yield

    running = {rank: steps_of(rank) for rank in programs}
    while True:
        before = sum(map(len, begun.values()))
        running = {rank: steps for rank, steps in running.items() if next(steps, rank) is None}
        if sum(map(len, begun.values())) == before:
            return begun
