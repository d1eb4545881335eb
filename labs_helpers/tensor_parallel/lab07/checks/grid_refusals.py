"""What exercise 2 has to refuse: on every rank, and before any rank waits for another."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.tensor_parallel.lab07.checks.grid_causes import Grid
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks

PRODUCT = "where mp_size · dp_size is not comm.Get_size(), raise ValueError"
FEWER = "fewer ranks than comm has are as wrong as more: the others would be in no grid"
UNKNOWN = "no branch is for it: an else with raise, or a test before"
SILENT = "return and print end in silence, and the caller goes on: raise ValueError(…)"
ANOTHER = "another kind of error is raised than the one that is asked for, by which a caller knows it"
EVERY = (
    "every rank knows the sizes, so each can raise by itself: no if rank == …. Else the others wait for ever in Split"
)
BEFORE = "the tests stand behind it; before it they cost nothing, and no rank has begun to wait"
ASSERTED = "assert raises AssertionError, and `python -O` skips it: raise ValueError(…)"
REFUSED = (  # (what, ranks, grid, layer, in_dim, out_dim, the cause where the others are refused)
    ("mp 3 × dp 3 on 6 ranks", 6, Grid(3, 3), "fc_q", 36, 36, PRODUCT),
    ("mp 3 × dp 1 on 6 ranks", 6, Grid(3, 1), "fc_q", 36, 36, FEWER),
    ("the layer fc_x", 6, Grid(2, 3), "fc_x", 36, 36, UNKNOWN),
    ("fc_q with out_dim 9 on mp 2", 4, Grid(2, 2), "fc_q", 8, 9, "of fc_q, out_dim is split"),
    ("fc_v with out_dim 10 on mp 4", 4, Grid(4, 1), "fc_v", 8, 10, "of fc_v, too, out_dim is split"),
    (
        "fc_o with in_dim 9 on mp 2",
        4,
        Grid(2, 2),
        "fc_o",
        9,
        8,
        "of fc_o, in_dim is split: that is what mp_size divides",
    ),
)


@dataclass
class Outcome:
    """What came of a rank: the error that it raised, and which of comm's methods it had called."""

    error: Exception | None = None
    called: list[str] = field(default_factory=list)
    ended: bool = False
    nothing: bool = False  # was returned


class _Watched:
    """A communicator that notes which of its methods are asked for."""

    def __init__(self, comm: Any, called: list[str]):
        self._comm, self._called = comm, called

    def __getattr__(self, name: str):
        value = getattr(self._comm, name)
        if name not in ("Get_rank", "Get_size", "rank", "size"):
            self._called.append(name)
        return value


def expect_refused(
    student, what: str, ranks: int, grid: Grid, layer: str, in_dim: int, out_dim: int, cause: str
) -> None:
    """Raises Wrong unless every rank raises ValueError, and has called nothing before."""
    outcomes = _outcomes(student, ranks, (*grid, layer, in_dim, out_dim))
    asked = "ValueError is asked for"
    for rank, one in enumerate(outcomes):
        if one.error is not None and not isinstance(one.error, ValueError):
            raised = describe_error(student, one.error).found
            by_hand = "raise " in raised and ANOTHER  # a line of the student's
            why = ASSERTED if isinstance(one.error, AssertionError) else by_hand or (cause if layer == "fc_x" else "")
            raise Wrong(what, f"rank {rank} raised {raised}\n{asked}", cause=why) from one.error
    refused = [rank for rank, one in enumerate(outcomes) if one.error is not None]
    others = [rank for rank in range(ranks) if rank not in refused]
    if not refused:
        silent = all(one.nothing for one in outcomes)
        raise Wrong(what, f"nothing is raised; {asked}", cause=SILENT if silent else cause)
    if others:
        one = outcomes[others[0]]
        does = "goes on" if one.ended else f"waits in {one.called[-1] if one.called else 'a loop'}"
        raise Wrong(what, f"rank {refused[0]} raises ValueError, and rank {others[0]} {does}", cause=EVERY)
    for rank, one in enumerate(outcomes):
        if one.called:
            found = f"rank {rank} calls {one.called[0]} before it raises ValueError; nothing may be sent before"
            raise Wrong(what, found, cause=BEFORE)


def _outcomes(student, ranks: int, arguments: tuple) -> list[Outcome]:
    outcomes = [Outcome() for _ in range(ranks)]

    def call(answer, comm) -> None:
        mine = outcomes[comm.rank]
        try:
            mine.nothing = answer(_Watched(comm, mine.called), comm.rank, *arguments) is None
        except Exception as error:
            mine.error = error
        mine.ended = True

    with suppress(Wrong):  # where some wait for ever, the outcomes tell
        on_ranks("", student, call, [()] * ranks)
    return outcomes
