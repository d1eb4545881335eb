"""A practice rank's side of a process group's collective: it passes its tensors, and may go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch.distributed as dist
from torch import Tensor

from labs_helpers.practice.collective import Rendezvous
from labs_helpers.practice.mailbox import COLLECTIVE
from labs_helpers.practice.process_groups.record import START, Called, Event, ProcessRun
from labs_helpers.practice.process_groups.work import PracticeWork, TensorCall
from labs_helpers.practice.scheduler import Scheduler

Results = list[Any]  # for each rank: a tensor for each of its outputs, or None
ProcessGroup: Any = dist.ProcessGroup


class Caller(ProcessGroup):  # type: ignore[misc]
    """One rank's group: the rank at `place` among `ranks` of all ranks."""

    def __init__(
        self,
        scheduler: Scheduler,
        run: ProcessRun,
        rendezvous: dict[tuple[Any, ...], Rendezvous],
        ranks: tuple[int, ...],
        place: int,
    ) -> None:
        super().__init__(place, len(ranks))
        self._scheduler, self._run, self._meetings, self._ranks, self._place = scheduler, run, rendezvous, ranks, place
        self._number = 0

    @property
    def group_name(self) -> str:
        return repr(self)

    group_desc = group_name

    def beside(self, ranks: Sequence[int]) -> Caller:
        """Return another group of the same run: `ranks` of all ranks, in that order, including this one."""
        place = list(ranks).index(self._ranks[self._place])
        return type(self)(self._scheduler, self._run, self._meetings, tuple(ranks), place)

    def mark(self, what: str) -> None:
        """Note in the log that this rank has reached a place."""
        self._run.log.append(Event(self._ranks[self._place], what))

    def _start(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        finish: Callable[[list[Any]], Results],
        opts: Any,
        *,
        keep_inputs: bool = False,
        elements: int | None = None,
        op: str | None = None,
        **root: int,
    ) -> PracticeWork:
        """Arrive at this group's next collective. inputs, outputs: flat memory. finish(all contributions) is called
        once and returns one result per rank. elements: of the whole tensor, by default those of the inputs. root:
        src= or dst=."""
        me, scheduler, run = self._ranks[self._place], self._scheduler, self._run
        dtype = str(inputs[0].dtype).removeprefix("torch.") if inputs else ""
        sizes = [x.numel() for x in inputs]
        call = TensorCall(COLLECTIVE, me, posted=scheduler.clock[me], name=name, ranks=self._ranks)
        call.inputs, call.outputs, call.brought = inputs, outputs, [x.clone() for x in inputs]
        call.alike = {"elements": sizes[0] if len(sizes) == 1 else sizes, "dtype": dtype, "op": op, **root}
        elements = sum(sizes) if elements is None else elements
        called = Called(
            me,
            name,
            self._ranks,
            number=len(run.of(me)),
            nbytes=elements * inputs[0].element_size() if inputs else 0,
            elements=elements,
            dtype=dtype,
            op=op,
            root=next(iter(root.values()), None),
            asynchronous=bool(getattr(opts, "asyncOp", True)),
            address=inputs[0].data_ptr() if inputs else 0,
        )
        for other in scheduler.requests:
            if isinstance(other, TensorCall) and other.shares(me, inputs):
                other.again = call.again = called.again = True
        run.calls.append(called)
        run.log.append(Event(me, START, called))
        rendezvous = self._meetings.setdefault((*self._ranks, "number", self._number), Rendezvous())
        self._number += 1
        rendezvous.join(self._place, call, finish)
        if called.asynchronous:
            scheduler.requests.append(call)
            call.leave(keep_inputs)
        return PracticeWork(scheduler, run.log, call, called)

    def _root(self, name: str, what: str, root: int) -> int:
        if not 0 <= root < self.size():
            raise ValueError(f"{name}: {what} is {root} in the group, whose ranks are 0 to {self.size() - 1}")
        return int(root)

    def __repr__(self) -> str:
        return f"<practice group of ranks {', '.join(map(str, self._ranks))}>"

    def _unknown(self, *args: Any, **settings: Any) -> NoReturn:
        raise NotImplementedError(
            "practice ranks know all_reduce, broadcast, reduce, all_gather, all_gather_into_tensor, reduce_scatter, "
            "reduce_scatter_tensor, gather, scatter and barrier; not what was called here"
        )

    send = recv = recv_anysource = monitored_barrier = split_group = _start_coalescing = _unknown
    alltoall = alltoall_base = all_to_all_single = allgather_coalesced = _unknown
    allgather_into_tensor_coalesced = all_gather_single_coalesced = _unknown
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced = _unknown
