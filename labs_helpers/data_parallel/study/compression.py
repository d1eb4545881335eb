"""Kinds `compression` and `loss_curve`: measure the bytes, the step time and the loss with compressed gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from labs_helpers.data_parallel.compression.int8 import Int8
from labs_helpers.data_parallel.compression.power_sgd import PowerSGD
from labs_helpers.data_parallel.compression.top_k import TopK
from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average
from labs_helpers.data_parallel.study.replicas import replica
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import ALONE, race
from labs_helpers.data_parallel.study.wrappers import bytes_per_step
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import adamw, evaluate, learning_rate, next_token_loss

MEAN = "mean"
HOOKS: dict[str, Callable[[bool], CommunicationHook]] = {
    "top-k 1%": lambda feedback: TopK(0.01, feedback),
    "top-k 10%": lambda feedback: TopK(0.1, feedback),
    "int8": lambda feedback: Int8(error_feedback=feedback),
    "PowerSGD": lambda feedback: PowerSGD(feedback),
}
# (peak learning rate, function that makes the optimizer). Error feedback's theory covers SGD; this course uses AdamW.
OPTIMIZERS: dict[str, tuple[float, Callable[[nn.Module, float], torch.optim.Optimizer]]] = {
    "AdamW": (1e-3, adamw),
    "SGD": (0.1, lambda model, rate: torch.optim.SGD(model.parameters(), rate, momentum=0.9)),
}


def _hooks() -> list[tuple[str, bool, Callable[[], CommunicationHook]]]:
    """Return (name, error feedback, function that makes the hook) for each hook, the plain mean first."""
    made: list[tuple[str, bool, Callable[[], CommunicationHook]]] = [(MEAN, False, lambda: average)]
    for name, make in HOOKS.items():
        made += [(name, feedback, partial(make, feedback)) for feedback in (True, False)]
    return made


def measure(task: Task) -> list[Record]:
    """Return one record per hook: the time of a step, and the bytes that a rank sends in it.

    Every rank calls this, and gets the same list.
    """
    hooks = {name: (feedback, make) for name, feedback, make in _hooks() if feedback or name == MEAN}
    steps = {name: replica(task, "bucketed", hook=make()) for name, (_, make) in hooks.items()}
    sent = {name: bytes_per_step(step) for name, step in steps.items()}
    # Compression changes the gradients, so the losses differ.
    found = race(task, {ALONE: replica(task, ALONE), **steps}, alike=())
    for step in steps.values():
        step.remove()
    same = task.about | {"kind": "compression", "alone_ms": found[ALONE]["step_ms"]}
    return [
        same | {"hook": name, "error_feedback": feedback, "sent_bytes": sent[name]} | found[name]
        for name, (feedback, _) in hooks.items()
    ]


def measure_losses(task: Task) -> list[Record]:
    """Return one record per optimizer and hook, with error feedback and without it.

    A record has the loss of each of `options.steps` steps on bytes of Python's standard library, and the final loss on
    held-out bytes. All curves use the same initial weights and batches, without clipping. Steps are not timed. Every
    rank calls this, and gets the same list.
    """
    records = []
    for optimizer, (rate, _) in OPTIMIZERS.items():
        for name, feedback, make in _hooks():
            task.say(f"loss curve: {optimizer}, {name}{', with feedback' * feedback}")
            losses, validation = _train(task, make(), optimizer)
            about = {"kind": "loss_curve", "optimizer": optimizer, "hook": name, "error_feedback": feedback}
            about |= {"learning_rate": rate, "steps": task.options.steps, "losses": losses, "validation": validation}
            records.append(task.about | about)
    return records


def _train(task: Task, hook: CommunicationHook, optimizer: str) -> tuple[list[float], float]:
    options, model = task.options, task.setting.model()
    ddp = BucketedDDP(model, task.group, bucket_mb=task.bucket_mb, first_bucket_mb=min(1.0, task.bucket_mb), hook=hook)
    rate, make = OPTIMIZERS[optimizer]
    updates, losses = make(model, rate), []
    data = batches("train", options.batch, options.length, seed=dist.get_rank(task.group))
    for number, (x, y) in zip(range(options.steps), data, strict=False):
        for group in updates.param_groups:
            group["lr"] = learning_rate(number, options.steps, rate)
        loss = next_token_loss(ddp(x.to(task.device)), y.to(task.device))
        loss.backward()
        ddp.finish()
        updates.step()
        model.zero_grad()
        losses.append(loss.item())
    ddp.remove()
    by_rank = gathered(losses, task.group)
    return [round(sum(at) / len(at), 4) for at in zip(*by_rank, strict=True)], evaluate(model, options.length, 64)
