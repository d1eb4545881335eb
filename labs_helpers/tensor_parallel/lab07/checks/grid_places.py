"""What each rank makes of exercise 2: its place, the ranks of its groups, its part; held against what is right."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.messages.python import WHOLE
from labs_helpers.tensor_parallel.lab07.checks.grid_causes import (
    SHARED,
    Grid,
    Ranks,
    group_causes,
    index_causes,
    part_causes,
)
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import WORLD, of_world

NAMES = ("mp_idx", "dp_idx", "mp_comm", "dp_comm", "part_in_dim", "part_out_dim")
FORM = f"({', '.join(NAMES)})"
SLICES = "which dimension of this layer is cut, and into how many parts?"
ADVICE = "draw the grid with a row for each model, write the ranks into it, and read off rank {rank}."


class Place(NamedTuple):
    """An answer, with the ranks of its communicators."""

    mp_idx: int
    dp_idx: int
    mp_comm: Ranks
    dp_comm: Ranks
    part_in_dim: int
    part_out_dim: int


def on_practice_rank(student, world, grid: Grid, layer: str, in_dim: int, out_dim: int, halves: bool) -> tuple:
    """(the ranks of comm, the answer, those of each of its communicators), ranks of the world. halves: comm has every
    other rank, in reverse order, and the ranks between make a grid of their own."""
    comm = world.Split(color=world.rank % 2, key=-world.rank) if halves else world
    answer = student(comm, comm.rank, *grid, layer, in_dim, out_dim)
    parts = answer if isinstance(answer, (tuple, list)) else ()
    return comm.ranks, answer, [getattr(part, "ranks", None) for part in parts]


def on_real_rank(student, world, grid: Grid, layer: str, in_dim: int, out_dim: int) -> Place:
    """The same on a real rank, in a communicator with all ranks in reverse order."""
    comm = world.Split(color=0, key=-world.rank)
    answer = student(comm, comm.rank, *grid, layer, in_dim, out_dim)
    members = [tuple(group.allgather(comm.rank)) for group in answer[2:4]]
    return Place(*answer[:2], *members, *answer[4:])


def expect_places(case: str, student, results: list[tuple], grid: Grid, layer: str, dims: tuple[int, int]) -> None:
    """Raises Wrong unless each rank is where it belongs. results: of `on_practice_rank`, by the world's ranks."""
    for ranks in dict.fromkeys(result[0] for result in results):
        found = []
        for rank, world_rank in enumerate(ranks):
            _, answer, members = results[world_rank]
            found.append(_place(case, student, rank, ranks, answer, members))
        expect_right(case, student, found, grid, layer, dims)


def expect_right(case: str, student, found: list[Place], grid: Grid, layer: str, dims: tuple[int, int]) -> None:
    """found: each rank's, by its rank in comm. Raises Wrong at the first that is not right."""
    indices, right = [tuple(place[:2]) for place in found], grid.indices()
    cause = likely(index_causes(grid), lambda answer: answer == indices)
    _compare(case, "(mp_idx, dp_idx)", indices, right, cause or of_world(student))
    for name in ("mp_comm", "dp_comm"):
        groups, right = [getattr(place, name) for place in found], grid.groups(name)
        cause = likely(group_causes(grid, name), lambda answer, groups=groups: answer == groups)
        if any(-1 in ranks for ranks in groups) and of_world(student):
            cause = (WORLD,)
        _compare(case, name, groups, right, cause or _seen(name, groups, right))
    parts = [tuple(place[4:]) for place in found]
    cause = likely(part_causes(grid, layer, *dims), lambda answer: set(parts) == {answer})
    _compare(case, "(part_in_dim, part_out_dim)", parts, [grid.part(layer, *dims)] * len(parts), cause)


def _compare(case: str, name: str, found: list, right: list, cause) -> None:
    wrong = [rank for rank, (mine, its) in enumerate(zip(found, right, strict=True)) if mine != its]
    if wrong:
        rank = wrong[0]
        also = f" (and on ranks {', '.join(map(str, wrong[1:]))})" if wrong[1:] else ""
        said, expected = (_text(name, values[rank]) for values in (found, right))
        advice = SLICES if "dim" in name else ADVICE.format(rank=rank)
        raise Wrong(case, said, expected, f"{name} on rank {rank}{also}", cause, advice)


def _seen(name: str, groups: list[Ranks], right: list[Ranks]) -> tuple[str, ...]:
    """What can be said of groups that no mistake explains."""
    if [sorted(ranks) for ranks in groups] == [sorted(ranks) for ranks in right]:
        return (f"the ranks are right, and their order is not: key orders them, lowest first: {SHARED[name][1]}",)
    if any(-1 in ranks for ranks in groups):
        return ("ranks are in it that are not in comm: it is a Split of another communicator",)
    return ()


def _text(name: str, value: tuple) -> str:
    if not name.endswith("comm"):
        return f"{value}"
    known = ", ".join(str(rank) for rank in value if rank >= 0)
    return f"ranks {known}" + " and others that are not in comm" * (-1 in value)


def _place(case: str, student, rank: int, ranks: Ranks, answer, members: list) -> Place:
    """A rank's answer. Raises Wrong where it is no such tuple."""
    if not isinstance(answer, (tuple, list)) or len(answer) != len(NAMES):
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"rank {rank} returned {answer!r:.90}; {FORM} is asked for", cause=cause)
    for name, part, group in zip(NAMES, answer, members, strict=True):
        is_comm = name.endswith("comm")
        if is_comm != (group is not None):
            elsewhere = any(one is not None for one in (*members[:2], *members[4:]))
            cause = f"the order is {FORM}" if elsewhere else of_world(student)
            kind = "one of comm's communicators" if is_comm else "an integer"
            raise Wrong(case, f"rank {rank}: {name} is {part!r:.60}, not {kind}", cause=cause)
        if not is_comm and (not isinstance(part, Integral) or isinstance(part, bool)):
            cause = WHOLE if isinstance(part, float) else ""
            raise Wrong(case, f"rank {rank}: {name} is {part!r:.60}, not an integer", cause=cause)
    values: list[Any] = [
        tuple(ranks.index(one) if one in ranks else -1 for one in group) if group is not None else part
        for part, group in zip(answer, members, strict=True)
    ]
    return Place(*values)
