"""Record how many bytes of tensors are alive, allocation by allocation, while a function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_leaves

from labs_helpers.measure.peak_memory import Alive

Value = TypeVar("Value")
Mark = Callable[[str], None]
Timeline = dict[str, Any]


def memory_timeline(
    function: Callable[[Mark], Value], *, before: int | None = None, points: int = 400, device: str | None = None
) -> tuple[Value, Timeline]:
    """Return (value, timeline): the result of `function(mark)`, and the bytes alive during that call, ready for JSON.

            {"device": "cuda", "before": bytes alive at the call, "peak": the largest number,
             "points": [[change, bytes], …], "marks": [[change, name], …]}

    Time is counted in changes: each tensor created or freed is one. In the function, `mark(name)` names the part that
    follows. If there are many points, the timeline keeps those that show the larger rises and falls, and the peak.

    On a GPU the numbers come from the history of PyTorch's allocator, in the bytes requested; the allocator reserves up
    to 511 more per tensor. `before` is its own count. Libraries allocate workspaces at their first call, so call the
    function once before. On a CPU the numbers count tensors created inside, on top of `before` as you count it (default
    0), as `peak_memory` does; a tensor that existed before and is freed inside still counts. device: 'cuda' or 'cpu',
    by default this machine's.
    """
    if device is None:
        from labs_helpers.measure.machine import this_machine

        device = this_machine().device
    follow = _on_a_gpu if device == "cuda" else _on_a_cpu
    value, alive, marks = follow(function, before)
    kept = [[change, alive[change]] for change in _worth_keeping(alive, points)]
    return value, {"device": device, "before": alive[0], "peak": max(alive), "points": kept, "marks": marks}


class _History(Alive):
    """The bytes alive after each change."""

    def __init__(self, before: int) -> None:
        super().__init__(known=())
        self.history = [before]

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # An argument that no operator in here created existed before.
        for given in tree_leaves((args, kwargs)):
            if isinstance(given, torch.Tensor):
                self.seen.add(given.untyped_storage())
        return super().__torch_dispatch__(function, types, args, kwargs)

    def change(self, nbytes: int) -> None:
        super().change(nbytes)
        self.history.append(self.history[-1] + nbytes)


def _on_a_cpu(function: Callable[[Mark], Value], before: int | None) -> tuple[Value, list[int], list[list[Any]]]:
    marks: list[list[Any]] = []
    with _History(before or 0) as alive:
        value = function(lambda name: marks.append([len(alive.history) - 1, name]))
        history = list(alive.history)  # tensors freed later still call `change`
    return value, history, marks


def _on_a_gpu(function: Callable[[Mark], Value], before: int | None) -> tuple[Value, list[int], list[list[Any]]]:
    def changes() -> int:
        stats = torch.cuda.memory_stats()
        return int(stats["allocation.all.allocated"] + stats["allocation.all.freed"])

    torch.cuda.synchronize()
    memory, marks = torch.cuda.memory, []
    memory._record_memory_history(None)  # discards earlier records
    memory._record_memory_history("all", context=None, stacks="python")
    try:
        first, start = changes(), int(torch.cuda.memory_stats()["requested_bytes.all.current"])
        value = function(lambda name: marks.append([changes() - first, name]))
        entries = memory._snapshot()["device_traces"][torch.cuda.current_device()]
    finally:
        memory._record_memory_history(None)
    alive = [start if before is None else before]
    for entry in entries:
        # A free is requested once, like an allocation, and counted there; completed later where streams share a tensor.
        if entry["action"] in ("alloc", "free_requested"):
            alive.append(alive[-1] + (entry["size"] if entry["action"] == "alloc" else -entry["size"]))
    return value, alive, marks


def _worth_keeping(alive: list[int], points: int) -> list[int]:
    """Return at most `points` indices of the list in order: from each stretch its ends, its highest and its lowest
    point."""
    if len(alive) <= points:
        return list(range(len(alive)))
    stretches = max(points // 4, 1)
    kept: set[int] = set()
    for i in range(stretches):
        stretch = range(i * len(alive) // stretches, (i + 1) * len(alive) // stretches)
        kept |= {stretch[0], stretch[-1], max(stretch, key=alive.__getitem__), min(stretch, key=alive.__getitem__)}
    return sorted(kept)
