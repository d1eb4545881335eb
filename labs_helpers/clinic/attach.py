"""Attach the instruments to a program that knows nothing of them, through PyTorch's hooks."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from labs_helpers.clinic.causes import CAUSES, HEALTHY
from labs_helpers.clinic.examine import Findings, contents, in_trace, together
from labs_helpers.clinic.findings import MEANING
from labs_helpers.clinic.rules import REFERENCE, diagnose
from labs_helpers.launch import flight_recorder
from labs_helpers.launch.stuck import stack_of
from labs_helpers.measure.step_parts import passes_marked
from labs_helpers.measure.trace import profiler, trace_of


class Attached:
    """Inside the block, examine `steps` steps of the program, and print a report on rank 0.

    after: steps before the profiler starts; it discards one more. A step lasts from one update of an optimizer to its
    next one, whatever other optimizers update in between. quiet: after so many seconds without an update, print where
    this rank stands, once.
    """

    def __init__(self, after: int, steps: int, quiet: float) -> None:
        self.after, self.steps, self.quiet = after, steps, quiet
        self.done, self.still = 0, 0
        self.last, self.over = time.monotonic(), threading.Event()
        self.updated: list[Optimizer] = []  # in this step
        self.before: list[int] = []
        self.memory: list[int] = []
        self.stack = ExitStack()  # what is open during the examination

    def __enter__(self) -> Attached:
        self.hook = register_optimizer_step_post_hook(self._after_update)
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.hook.remove()
        self.over.set()
        self.stack.close()
        if self.done < self.after + 1 + self.steps and not any(error):
            needed = self.after + 1 + self.steps
            print(f"the program took {self.done} steps, {needed} are needed: try a smaller --after", file=sys.stderr)

    def _after_update(self, optimizer: Optimizer, *_: Any) -> None:
        self.last = time.monotonic()
        if self.updated and optimizer not in self.updated:
            self.updated.append(optimizer)
        else:
            self._after_step(self.updated or [optimizer])
            self.updated = [optimizer]

    def _after_step(self, optimizers: list[Optimizer]) -> None:
        self.done += 1
        number = self.done - self.after  # 0: the profiler starts; 1: the step that it discards has ended
        device = optimizers[0].param_groups[0]["params"][0].device
        if number == 0:
            self.refused = _refused(device)
            self.stack.enter_context(passes_marked())
            self.profiling = self.stack.enter_context(profiler(1, self.steps))
        elif 1 <= number <= self.steps + 1:
            now = contents(self._parameters(optimizers))
            self.still += number > 1 and now == self.before
            self.before = now
            self.memory.append(torch.cuda.memory_allocated(device) if device.type == "cuda" else 0)
            self.profiling.step()
            if number == self.steps + 1:
                self.stack.close()
                # NCCL gathers from the current GPU, and the program may never have called set_device.
                with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
                    self._report(trace_of(self.profiling).events, device)

    @staticmethod
    def _parameters(optimizers: list[Optimizer]) -> list[torch.Tensor]:
        """Return the parameters that each rank holds as a whole; several optimizers may share some."""
        every = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        return [p for p in dict.fromkeys(every) if not isinstance(p, DTensor)]

    def _report(self, events: list[Any], device: torch.device) -> None:
        mine = in_trace(events, self.steps)
        calls = [event for event in events if event["cat"] == "cpu_op" and event["name"].startswith("c10d::")]
        mine |= {"collectives": len(calls) / self.steps, "steps without a change": self.still / self.steps}
        if self.memory[-1]:
            growth, peak = (self.memory[-1] - self.memory[0]) / self.steps, torch.cuda.max_memory_allocated()
            mine |= {"growth": growth / peak, "refused requests": _refused(device) - self.refused}
            mine["headroom"] = 1 - peak / torch.cuda.mem_get_info()[1]
        every: list[Any] = [(mine, self.before)]
        if dist.is_initialized():
            every = [None] * dist.get_world_size()
            dist.all_gather_object(every, (mine, self.before))
        if not dist.is_initialized() or dist.get_rank() == 0:
            by_rank, sums = map(list, zip(*every, strict=True))
            print(report(together(by_rank, sums), self.after, self.steps), flush=True)

    def _watch(self) -> None:
        while not self.over.wait(1):
            if time.monotonic() - self.last > self.quiet:
                frame = sys._current_frames()[threading.main_thread().ident or 0]
                rank, begun = os.environ.get("RANK", "0"), flight_recorder.recorded() if dist.is_initialized() else []
                where = next(iter(stack_of(frame, __file__)), "outside your code")
                last = f"; its last collective: {begun[-1]}" if begun else ""
                print(f"rank {rank}: no step for {self.quiet:g} s; it is in {where}{last}", file=sys.stderr, flush=True)
                return


def _refused(device: torch.device) -> int:
    """Return how often CUDA's caching allocator had to return segments before the device gave it another."""
    return int(torch.cuda.memory_stats(device)["num_alloc_retries"]) if device.type == "cuda" else 0


def report(found: Findings, after: int, steps: int) -> str:
    """Return the findings in words, a line each, and the diagnosis of the reference rules."""
    lines = [f"{name:>24} {found[name]:<12.4g} {meaning}" for name, meaning in MEANING.items() if name in found]
    cause = diagnose(found, REFERENCE)
    what, change = CAUSES[cause]
    said = "none of the reference rules holds" if cause == HEALTHY else f"{cause}: {what}. To change: {change}"
    return "\n".join([f"steps {after + 2} to {after + 1 + steps}", *lines, f"Diagnosis: {said}"])
