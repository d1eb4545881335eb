"""Who holds what after each step of an all-reduce round a ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labs_helpers.collectives.counting import CountingComm
from labs_helpers.course.verdict.picture import Panel, Picture
from labs_helpers.draw.cells import draw_cells
from labs_helpers.practice import practice

OWN, SOME, ALL = range(3)
KINDS = {"its own part": "skipped tile", "parts of several ranks": "one", "all ranks' parts": "all"}


class _Watched(CountingComm):
    """A communicator that keeps a copy of `data` before each message that its rank sends."""

    def __init__(self, comm, data: np.ndarray):
        super().__init__(comm)
        self.data, self.seen = data, []

    def _count(self, buf, dest) -> None:
        self.seen.append(self.data.copy())
        super()._count(buf, dest)


def states(allreduce: Callable, size: int = 4) -> list[np.ndarray]:
    """What the ranks hold before the first step and after each: a row per rank, a column per chunk.

    allreduce(comm, send, recv, op) sends one message per rank and step. Rank r begins with 10ʳ everywhere, so each
    digit of a sum is one rank's part. size: ranks, at most 9.
    """

    def on_rank(comm) -> list[np.ndarray]:
        recv = np.zeros(comm.size, np.int64)
        watched = _Watched(comm, recv)
        allreduce(watched, np.full(comm.size, 10**comm.rank), recv, np.add)
        return [*watched.seen, recv]

    return [np.array(step) for step in zip(*practice(on_rank, size).results, strict=True)]


def draw_step(held: Sequence[np.ndarray], step: int):
    """What each rank holds before and after a step, from 1 on, of `states`: whose parts are in each chunk."""
    before, after = held[step - 1], held[step]
    done = int((_kinds(after) == ALL).sum())
    place = (0.0, float(after.shape[1]), float(after.shape[0]), 0.0)
    panels = [Panel(name, _kinds(one), place, _texts(one)) for name, one in (("before", before), ("after", after))]
    title = f"After step {step} of {len(held) - 1}, {done} of {after.size} chunks are finished"
    below = "In each chunk: the ranks whose parts are in it, Σ for all of them."
    return draw_cells(Picture(title, KINDS, panels, below, ("rank", "chunk")))


def _parts(value: int, size: int) -> list[int]:
    """The ranks whose digit is in a sum, as often as it is."""
    return [rank for rank in range(size) for _ in range(int(value) // 10**rank % 10)]


def _texts(held: np.ndarray) -> list[list[str]]:
    everyone = list(range(len(held)))
    texts = [[_parts(value, len(held)) for value in row] for row in held]
    return [["Σ" if parts == everyone else ",".join(map(str, parts)) for parts in row] for row in texts]


def _kinds(held: np.ndarray) -> np.ndarray:
    texts = _texts(held)
    return np.array([[ALL if text == "Σ" else SOME if "," in text else OWN for text in row] for row in texts], np.int8)
