"""The handle of an asynchronous collective on practice ranks, which delivers the result in wait(), never before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from labs_helpers.practice.collective import Call
from labs_helpers.practice.mailbox import COLLECTIVE, Operation
from labs_helpers.practice.process_groups.poison import poison, same_bytes
from labs_helpers.practice.process_groups.record import DONE, WAIT, Called, Event
from labs_helpers.practice.scheduler import Scheduler

Work: Any = dist.Work


class TouchedTooEarly(RuntimeError):
    """A rank changed a tensor that a collective was still using."""


@dataclass(eq=False)
class TensorCall(Call):
    """A rank's arrival at a collective of tensors, given as flat memory. inputs: copied to `brought`. outputs: one
    tensor for each result; a result of None leaves poison there. guarded: (memory, its required contents when the
    rank waits)."""

    scope = "group"

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    guarded: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    again: bool = False  # another collective was given a tensor of this one before this one was waited for

    def shares(self, rank: int, tensors: list[Tensor]) -> bool:
        """Return True if this call of `rank` is under way with one of these tensors."""
        mine = {x.data_ptr() for x in (*self.inputs, *self.outputs)}
        return self.rank == rank and not self.finished and any(x.data_ptr() in mine for x in tensors if x.numel())

    def leave(self, keep_inputs: bool) -> None:
        """Let the rank go on without the result: until wait() its outputs are poisoned. keep_inputs: except where an
        output overlaps an input, as a gathered shard does in the whole tensor; it keeps its values."""
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
            if self.again:
                raise TouchedTooEarly(
                    f"rank {self.rank} sent a tensor of {self.name} a second time before the first one's wait()"
                )
            raise TouchedTooEarly(
                f"rank {self.rank} changed a tensor of {self.name} between its start and its wait(): until wait() "
                "returns the collective reads and writes it"
            )
        if self.result is None:
            for x in self.outputs:
                poison(x)
            return
        for x, value in zip(self.outputs, self.result, strict=True):
            x.copy_(value)


class PracticeWork(Work):  # type: ignore[misc]
    """The practice ranks' version of torch.distributed's Work. They have no streams."""

    def __init__(self, scheduler: Scheduler, log: list[Event], call: TensorCall, called: Called) -> None:
        super().__init__()
        self._scheduler, self._log, self._call, self._called = scheduler, log, call, called

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the result is in its tensors."""
        rank = self._call.rank
        self._called.waited = True
        self._log.append(Event(rank, WAIT, self._called))
        _hand_over(self._scheduler, rank, [self._call])
        self._log.append(Event(rank, DONE, self._called))
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """Return True if it is done; the result is then there. Other ranks run first, so a loop of these calls ends."""
        call, scheduler = self._call, self._scheduler
        if not call.finished:
            _hand_over(scheduler, call.rank, [Operation(COLLECTIVE, call.rank, done=scheduler.clock[call.rank] + 1)])
            if call.done is None or call.done > scheduler.clock[call.rank]:
                return False
            call.finish()
            self._called.waited = True
        return True

    is_success = is_completed

    def result(self) -> list[Tensor]:
        return self._call.outputs

    def exception(self) -> None:
        return None

    def get_future(self) -> PracticeFuture:
        return PracticeFuture(self)

    def block_current_stream(self) -> NoReturn:
        raise NotImplementedError("practice ranks have no streams: keep the work and call its wait()")

    get_future_result = block_current_stream


class PracticeFuture:
    """The future of a collective's tensors. You can wait for it, but it takes no callbacks."""

    def __init__(self, work: PracticeWork) -> None:
        self._work, self.done = work, work.is_completed

    def wait(self) -> list[Tensor]:
        self._work.wait()
        return self._work.result()

    value = wait

    def then(self, callback: Any) -> NoReturn:
        raise NotImplementedError("then() is not there on practice ranks: wait() for the future")

    add_done_callback = then


def _hand_over(scheduler: Scheduler, rank: int, operations: list[Operation]) -> None:
    """Let the other ranks run until `operations` are done. Each rank keeps its own random state, as a process would."""
    state = torch.get_rng_state()
    scheduler.wait(rank, operations)
    torch.set_rng_state(state)
