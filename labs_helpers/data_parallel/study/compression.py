"""Kinds `compression` and `loss_curve`: what hooks send, how long a step then takes, and what the model learns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.bucketed import BucketedDDP
from labs_helpers.data_parallel.compression.int8 import Int8
from labs_helpers.data_parallel.compression.power_sgd import PowerSGD
from labs_helpers.data_parallel.compression.top_k import TopK
from labs_helpers.data_parallel.hook import CommunicationHook, average
from labs_helpers.data_parallel.study.replicas import Replica
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import ALONE, race
from labs_helpers.data_parallel.study.wrappers import bytes_per_step
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import adamw, evaluate, learning_rate, next_token_loss

MEAN = "mean"
HOOKS: dict[str, Callable[[bool], CommunicationHook]] = {
    "top-k 1%": lambda feedback: TopK(0.01, feedback),
    "int8": lambda feedback: Int8(error_feedback=feedback),
    "PowerSGD": lambda feedback: PowerSGD(feedback),
}
RATE = 3e-3  # of AdamW, at its highest


def _hooks() -> list[tuple[str, bool, Callable[[], CommunicationHook]]]:
    """(name, error feedback, what makes one), of the mean first."""
    made: list[tuple[str, bool, Callable[[], CommunicationHook]]] = [(MEAN, False, lambda: average)]
    for name, make in HOOKS.items():
        made += [(name, feedback, partial(make, feedback)) for feedback in (True, False)]
    return made


def measure(task: Task) -> list[Record]:
    """A record per hook: the time of a step, and the bytes that a rank sends in it. Every rank calls it; the same list
    on all."""
    hooks = {name: (feedback, make) for name, feedback, make in _hooks() if feedback or name == MEAN}
    steps = {name: Replica(task, "bucketed", hook=make()) for name, (_, make) in hooks.items()}
    sent = {name: bytes_per_step(step) for name, step in steps.items()}
    # Compressed gradients are other gradients, so losses differ.
    found = race(task, {ALONE: Replica(task, ALONE), **steps}, alike=())
    for step in steps.values():
        step.remove()
    same = task.about | {"kind": "compression", "alone_ms": found[ALONE]["step_ms"]}
    return [
        same | {"hook": name, "error_feedback": feedback, "sent_bytes": sent[name]} | found[name]
        for name, (feedback, _) in hooks.items()
    ]


def measure_losses(task: Task) -> list[Record]:
    """A record per hook, with feedback and without: the loss of each of `options.steps` steps of AdamW, on bytes of
    Python's standard library, and the loss on other bytes at the end. Every rank calls it; the same list on all.

    Every curve begins with the same weights and has the same batches. How long a step takes is nobody's concern here.
    """
    records = []
    for name, feedback, make in _hooks():
        task.say(f"loss curve: {name}{', with feedback' * feedback}")
        losses, validation = _train(task, make())
        about = {"kind": "loss_curve", "hook": name, "error_feedback": feedback, "learning_rate": RATE}
        records.append(task.about | about | {"steps": task.options.steps, "losses": losses, "validation": validation})
    return records


def _train(task: Task, hook: CommunicationHook) -> tuple[list[float], float]:
    options, model = task.options, task.setting.model()
    ddp = BucketedDDP(model, task.group, bucket_mb=task.bucket_mb, first_bucket_mb=min(1.0, task.bucket_mb), hook=hook)
    optimizer, losses = adamw(model, RATE), []
    data = batches("train", options.batch, options.length, seed=dist.get_rank(task.group))
    for number, (x, y) in zip(range(options.steps), data, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(number, options.steps, RATE)
        loss = next_token_loss(ddp(x.to(task.device)), y.to(task.device))
        loss.backward()
        ddp.finish()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.zero_grad()
        losses.append(loss.item())
    ddp.remove()
    by_rank = gathered(losses, task.group)
    return [round(sum(at) / len(at), 5) for at in zip(*by_rank, strict=True)], evaluate(model, options.length, 64)
