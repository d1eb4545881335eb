"""A practice rank's side of a collective: it passes its contribution, and waits for the other ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.launch.flavour import find_mpi
from labs_helpers.practice.collective import Call, Collective, Rendezvous, World
from labs_helpers.practice.mailbox import COLLECTIVE, Operation
from labs_helpers.practice.scheduler import Scheduler


class Caller:
    """One rank's side of a communicator: the rank at position `rank` among `ranks` of the world."""

    def __init__(self, scheduler: Scheduler, world: World, name: tuple, ranks: tuple[int, ...], rank: int):
        self._scheduler, self._world, self._name, self._ranks = scheduler, world, name, ranks
        self.rank, self.size, self._number = rank, len(ranks), 0

    def _start(
        self, name: str, brought: Any, finish: Callable[[list], Any], nbytes: int | None = None, **alike: Any
    ) -> Call:
        """Arrive at this communicator's next collective. finish(all contributions) returns one result per rank.
        alike: values that must agree on all ranks. nbytes: None for an operation that `GroupRun.calls` does not
        list."""
        me, number = self._ranks[self.rank], self._number
        rendezvous = self._world.rendezvous.setdefault((*self._name, number), Rendezvous())
        self._number += 1
        call = Call(COLLECTIVE, me, posted=self._scheduler.clock[me], name=name, ranks=self._ranks)
        call.alike, call.brought = alike, brought
        if rendezvous.join(self.rank, call, finish) and nbytes is not None:
            self._world.calls.append(Collective(name.replace("Iall", "All"), self._ranks, nbytes))
        return call

    def _start_arrays(
        self,
        name: str,
        send: np.ndarray,
        recv: np.ndarray | None,
        finish: Callable[[list], Any],
        nbytes: int | None = None,
        elements: int | None = None,
        **alike: Any,
    ) -> Call:
        """Arrive with arrays; waiting stores the result in recv. nbytes, elements: those of send."""
        alike = {"elements": send.size if elements is None else elements, "dtype": str(send.dtype), **alike}
        call = self._start(name, send.copy(), finish, send.nbytes if nbytes is None else nbytes, **alike)
        call.buffer, call.recv = send, recv
        return call

    def _arrays(self, *args: Any, **alike: Any) -> None:
        self._wait([self._start_arrays(*args, **alike)])

    def _objects(self, name: str, brought: Any, finish: Callable[[list], Any], **alike: Any) -> Any:
        return copy.deepcopy(self._meet(name, copy.deepcopy(brought), finish, 0, **alike))

    def _meet(self, *args: Any, **alike: Any) -> Any:
        call = self._start(*args, **alike)
        self._wait([call])
        return call.result

    def _split(self, name: str, color: int, key: int):
        """Return the communicator of the ranks with this color, ordered by key, and by rank if keys are equal."""
        number = self._number
        everyone = self._meet(name, (color, key), lambda brought: [brought] * self.size)
        if color < 0:
            return None if find_mpi() is None else find_mpi().COMM_NULL
        places = [rank for _, rank in sorted((k, rank) for rank, (c, k) in enumerate(everyone) if c == color)]
        ranks = tuple(self._ranks[rank] for rank in places)
        return type(self)(self._scheduler, self._world, (*self._name, number, color), ranks, places.index(self.rank))

    def _wait(self, operations: list[Operation], status: Any = None) -> None:
        self._scheduler.wait(self._ranks[self.rank], operations)
