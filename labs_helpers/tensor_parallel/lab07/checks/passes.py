"""One call on a rank: its result, its communication and the operands it changed, with checks of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.copies import what_changed
from labs_helpers.tensor_parallel.lab07.checks.rank_group import Group

WRITTEN = "x += …, x[…] = …, in_place=True and methods that end in _ write into the input; make a new tensor"
WAITING = "start_all_reduce returns a request; the tensor holds the sum only after its wait() has returned"


@dataclass
class Pass:
    """The record of one call.

    returned: the result, with copies of its tensors and a list as a tuple. payload: bytes by collective. sent: bytes
    that left the rank. changed: a sentence about an operand that changed, or ''. started, waiting: the number of
    start_all_reduce calls, and how many of them nobody waited for.
    """

    returned: Any
    calls: Counter
    payload: Counter
    sent: int
    changed: str
    started: int
    waiting: int
    overwritten: list[int] = field(default_factory=list)  # indices of returned tensors that a later call changed

    @property
    def listed(self) -> str:
        """The collectives in words, such as '2 × all_reduce'."""
        return ", ".join(f"{times} × {name}" for name, times in self.calls.items()) or "nothing"

    def communication(self, numel: int) -> str:
        """Return "start_all_reduce", "all_reduce" if a tensor of numel elements was reduced, or ''."""
        if self.started:
            return "start_all_reduce"
        return "all_reduce" if self.payload["all_reduce"] in (4 * numel, 8 * numel) else ""

    def compare(self, now: Any) -> None:
        """Note which of the returned tensors have changed since."""
        pairs = zip(_parts(self.returned), _parts(now), strict=True)
        self.overwritten = [i for i, (before, after) in enumerate(pairs) if what_changed("", before, _detached(after))]


def watched(group: Group, operands: Mapping[str, Tensor], function: Callable, *arguments: Any) -> tuple[Any, Pass]:
    """Return (function(*arguments), the Pass that records the call)."""
    before = {name: tensor.detach().clone() for name, tensor in operands.items()}
    group.reset()
    returned = function(*arguments)
    said = (what_changed(name, before[name], _detached(tensor)) for name, tensor in operands.items())
    copies = [part.clone() if isinstance(part, Tensor) else part for part in map(_detached, _parts(returned))]
    answer = tuple(copies) if isinstance(returned, (tuple, list)) else copies[0]
    changed = next(filter(None, said), "")
    return returned, Pass(answer, group.calls, group.payload, group.bytes_sent, changed, group.started, group.waiting)


def expect_passes(title: str, what: str, passes: Sequence[Pass]) -> None:
    """Raise Wrong if a rank changed an operand, or returned before an all-reduce finished. what: the pass's name."""
    for rank, one in enumerate(passes):
        if one.changed:
            raise Wrong(title, f"rank {rank}: {one.changed}", cause=WRITTEN)
        if one.waiting:
            raise Wrong(title, f"rank {rank}'s {what} returns before an all-reduce is done", cause=WAITING)


def _parts(returned: Any) -> list:
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def _detached(part: Any) -> Any:
    return part.detach() if isinstance(part, Tensor) else part
