"""Kind `data_parallel`: compare torch.nn.DataParallel, with one thread per GPU, with one process per GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.study.replicas import TORCH, replica
from labs_helpers.data_parallel.study.task import LONG, Record, Task, gathered
from labs_helpers.data_parallel.study.turns import WARM_UP, race, take
from labs_helpers.measure.timing import Timing
from labs_helpers.transformer.train import next_token_loss
from labs_helpers.transformer.training_step import fixed_batch


def measure(task: Task) -> list[Record]:
    """Return one record per way; [] on CPUs or several nodes, where DataParallel does not work. Every rank calls it.

    DataParallel runs on rank 0 and uses all GPUs, while the other ranks wait and leave their GPUs idle. In every step
    it scatters the batch, copies the model to all GPUs, and sums all gradients on the first one.
    """
    world = dist.get_world_size()
    if task.device.type != "cuda" or len(set(task.hosts)) > 1 or world < 2:
        task.say("data_parallel needs several GPUs of one machine; skipped")
        return []
    names = (TORCH, "bucketed")
    steps = {name: replica(task, name) for name in names}
    found = race(task, steps)
    for step in steps.values():
        step.remove()
    steps.clear()
    waiting = dist.new_group(backend="gloo", timeout=LONG)  # gloo, unlike NCCL, runs nothing on the GPUs
    threads = _of_threads(task, world) if dist.get_rank() == 0 else {}
    dist.barrier(waiting)
    dist.destroy_process_group(waiting)
    found["DataParallel"] = gathered(threads)[0]
    same = task.about | {"kind": "data_parallel"}
    return [same | {"way": name} | record for name, record in found.items()]


class _Threads:
    """A training step of torch.nn.DataParallel over the batches of all ranks."""

    def __init__(self, task: Task, gpus: int) -> None:
        setting, options = task.setting, task.options
        self.model = setting.model()
        self.wrapped = torch.nn.DataParallel(self.model, list(range(gpus)))
        self.optimizer = setting.adamw(self.model.parameters())
        parts = [fixed_batch(task.config, options.batch, options.length, seed=rank) for rank in range(gpus)]
        self.tokens, self.targets = (torch.cat(both).to(task.device) for both in zip(*parts, strict=True))
        self.loss = torch.zeros(())

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "step", self._step

    def _step(self) -> None:
        loss = next_token_loss(self.wrapped(self.tokens), self.targets)
        loss.backward()
        self.optimizer.step()
        self.model.zero_grad()
        self.loss = loss.detach()


def _of_threads(task: Task, gpus: int) -> Record:
    step = _Threads(task, gpus)
    for _ in range(WARM_UP + 1):
        take(step)
    loss, taken = step.loss.item(), []
    for _ in range(task.options.rounds):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        take(step)
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end))
    return {"loss": loss} | Timing.of(taken).record("step")
