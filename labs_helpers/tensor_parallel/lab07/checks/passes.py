"""One call of a rank's: what it returned, sent and changed, and what has to be so of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.copies import what_changed
from labs_helpers.tensor_parallel.lab07.checks.rank_group import Group

WRITTEN = "x += …, x[…] = …, in_place=True and methods that end in _ write into what was given; make a new tensor"
WAITING = "start_all_reduce returns a request; until its wait() has returned, the tensor is not the sum"


@dataclass
class Pass:
    """returned: with copies of its tensors, a list as a tuple; payload: bytes by collective; sent: bytes that left the
    rank; changed: which operand is no longer as it was, in words; started, waiting: how many start_all_reduce
    there were, and how many of them nobody waited for."""

    returned: Any
    calls: Counter
    payload: Counter
    sent: int
    changed: str
    started: int
    waiting: int
    overwritten: list[int] = field(default_factory=list)  # which of the returned tensors a later call has changed

    @property
    def listed(self) -> str:
        """'2 × all_reduce'."""
        return ", ".join(f"{times} × {name}" for name, times in self.calls.items()) or "nothing"

    def communication(self, numel: int) -> str:
        """'', "all_reduce" where a tensor of so many elements was reduced, or "start_all_reduce"."""
        if self.started:
            return "start_all_reduce"
        return "all_reduce" if self.payload["all_reduce"] in (4 * numel, 8 * numel) else ""

    def compare(self, now: Any) -> None:
        """Note what has become of the very tensors that were returned."""
        pairs = zip(_parts(self.returned), _parts(now), strict=True)
        self.overwritten = [i for i, (before, after) in enumerate(pairs) if what_changed("", before, _detached(after))]


def watched(group: Group, operands: Mapping[str, Tensor], function: Callable, *arguments: Any) -> tuple[Any, Pass]:
    """(function(*arguments), what is known of the call)."""
    before = {name: tensor.detach().clone() for name, tensor in operands.items()}
    group.reset()
    returned = function(*arguments)
    said = (what_changed(name, before[name], _detached(tensor)) for name, tensor in operands.items())
    copies = [part.clone() if isinstance(part, Tensor) else part for part in map(_detached, _parts(returned))]
    answer = tuple(copies) if isinstance(returned, (tuple, list)) else copies[0]
    changed = next(filter(None, said), "")
    return returned, Pass(answer, group.calls, group.payload, group.bytes_sent, changed, group.started, group.waiting)


def expect_passes(title: str, what: str, passes: Sequence[Pass]) -> None:
    """Raise Wrong where a rank has changed what it was given, or a pass, called `what`, has not waited for a sum."""
    for rank, one in enumerate(passes):
        if one.changed:
            raise Wrong(title, f"rank {rank}: {one.changed}", cause=WRITTEN)
        if one.waiting:
            raise Wrong(title, f"rank {rank}'s {what} returns before an all-reduce is done", cause=WAITING)


def _parts(returned: Any) -> list:
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def _detached(part: Any) -> Any:
    return part.detach() if isinstance(part, Tensor) else part
