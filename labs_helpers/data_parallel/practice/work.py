"""What an asynchronous collective returns on practice ranks: the result is there after wait(), never before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from labs_helpers.collectives.practice.baton import Baton
from labs_helpers.collectives.practice.collective import Call
from labs_helpers.collectives.practice.mailbox import COLLECTIVE, Operation
from labs_helpers.data_parallel.practice.poison import poison, same_bytes
from labs_helpers.data_parallel.practice.record import DONE, WAIT, Called, Event

Work: Any = dist.Work


class TouchedTooEarly(RuntimeError):
    """A rank changed a tensor that a collective was still using."""


@dataclass(eq=False)
class TensorCall(Call):
    """A rank's arrival at a collective of tensors, given as flat memory. brought: copies of what it gives; outputs:
    where the result goes. kept: which of the inputs have to be readable meanwhile, as a gather's shard."""

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    guarded: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name} of ranks {', '.join(map(str, self.ranks))}"

    def leave(self, keep_inputs: bool) -> None:
        """The rank goes on without the result: until wait() the outputs are poison. keep_inputs: also where an output
        lies over them."""
        for x in self.outputs:
            poison(x)
        if keep_inputs:
            for x, copy in zip(self.inputs, self.brought, strict=True):
                x.copy_(copy)
        self.guarded = [(x, x.clone()) for x in (*self.inputs, *self.outputs)]

    def finish(self) -> None:
        if self.finished:
            return
        self.finished = True
        if not all(same_bytes(x, before) for x, before in self.guarded):
            raise TouchedTooEarly(
                f"rank {self.rank} changed a tensor of {self.name} between its start and its wait(): until wait() "
                "returns the collective reads and writes it"
            )
        for x, value in zip(self.outputs, self.result, strict=True):
            x.copy_(value)


class PracticeWork(Work):  # type: ignore[misc]
    """As torch.distributed's Work. Futures and streams are not on practice ranks."""

    def __init__(self, baton: Baton, log: list[Event], call: TensorCall, called: Called) -> None:
        super().__init__()
        self._baton, self._log, self._call, self._called = baton, log, call, called

    def wait(self, timeout: Any = None) -> bool:
        """Until the result is in its tensors."""
        rank = self._call.rank
        self._called._state["waited"] = True
        self._log.append(Event(rank, WAIT, self._called))
        hand_over(self._baton, rank, [self._call])
        self._log.append(Event(rank, DONE, self._called))
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """Whether it is done; then the result is there. Others have their turn first, so that a loop of it ends."""
        call, baton = self._call, self._baton
        if not call.finished:
            hand_over(baton, call.rank, [Operation(COLLECTIVE, call.rank, done=baton.clock[call.rank] + 1)])
            if call.done is None or call.done > baton.clock[call.rank]:
                return False
            call.finish()
            self._called._state["waited"] = True
        return True

    is_success = is_completed

    def result(self) -> list[Tensor]:
        return self._call.outputs

    def exception(self) -> None:
        return None

    def get_future(self) -> NoReturn:
        raise NotImplementedError("get_future() is not on practice ranks: keep the work and call its wait()")

    get_future_result = block_current_stream = get_future


def hand_over(baton: Baton, rank: int, operations: list[Operation]) -> None:
    """Lets the others run until `operations` are done. A process has random numbers of its own, so a rank has."""
    state = torch.get_rng_state()
    baton.wait(rank, operations)
    torch.set_rng_state(state)
