"""The training program of the clinic: a small language model, trained by ranks that average their gradients.

Every job of `clinic.jobs` is this program with one method or attribute replaced. Its cure puts the original back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler

from labs_helpers.communication.interface import Communication
from labs_helpers.transformer import SIZES, Transformer, TransformerConfig
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.counts import step_peak
from labs_helpers.transformer.text import text
from labs_helpers.transformer.train import adamw, next_token_loss

Batch = list[Tensor]


class Windows(Dataset[Batch]):
    """Item i: `length` bytes of a text, and the byte after each."""

    def __init__(self, data: Tensor, length: int) -> None:
        self.data, self.length = data, length

    def __len__(self) -> int:
        return (len(self.data) - 1) // self.length

    def __getitem__(self, i: int) -> Batch:
        both = self.data[i * self.length : (i + 1) * self.length + 1].long()
        return [both[:-1], both[1:]]


class Training:
    """One rank of the program: `step()` takes a training step on the next batch.

    group: all ranks. seed: draws the weights, the order of the data, and what a job leaves to chance (`random`); it is
    the same on every rank. On a GPU the model and the batch are larger.
    """

    ranks = 2
    ranks_per_node = 2
    batch = 8  # sequences per rank and step
    log_every = 4  # steps
    learning_rate = 1e-3
    room = 2  # the device's memory holds a step with `room` healthy batches

    def __init__(self, group: Communication, seed: int) -> None:
        self.group, self.seed, self.random = group, seed, random.Random(seed)
        self.device = group.device
        self.on_gpu = self.device.type == "cuda"
        self.length = 512 if self.on_gpu else 64  # tokens per sequence
        self.steps, self.sum, self.logged = 0, torch.zeros((), device=self.device), list[float]()
        torch.manual_seed(seed)
        self.model = self.make_model().to(self.device)
        self.optimizer = adamw(self.model, self.learning_rate)
        self.loader = self.make_loader()
        self.batches = self.endless()

    @property
    def config(self) -> TransformerConfig:
        return replace(SIZES["small"], layers=6, vocabulary=256) if self.on_gpu else SIZES["tiny"]

    @property
    def groups(self) -> Mapping[str, Communication]:
        """The groups in which this rank sends, by the axis of the ranks' mesh."""
        return {"dp": self.group}

    @property
    def part(self) -> int:
        """Which part of the model this rank holds: ranks with the same part are replicas and read different data."""
        return 0

    def make_model(self) -> nn.Module:
        return Transformer(self.config, sdpa)

    @property
    def memory_limit(self) -> float:
        """The bytes of the device's memory. This is a pretended limit, so that every machine has the same job."""
        return 1.05 * step_peak(self.config, self.room * Training.batch, self.length, attention="flash")

    def data(self) -> Dataset[Batch]:
        """Return the dataset, the same on every rank."""
        return Windows(text("validation")[:1_000_000], self.length)

    def sampler(self, data: Any) -> Sampler[int]:
        """Return the order of this rank's items: each rank reads a different part."""
        return DistributedSampler(data, self.group.size, self.group.rank, seed=self.seed)

    def make_loader(self) -> DataLoader[Batch]:
        data = self.data()
        return DataLoader(data, self.batch, sampler=self.sampler(data), drop_last=True)

    def endless(self) -> Iterator[Batch]:
        while True:
            yield from self.loader

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        if self.on_gpu:
            torch.cuda.synchronize()  # a collective that no other rank joins lets this rank wait only here

    def step(self) -> None:
        x, y = (part.to(self.device, non_blocking=True) for part in next(self.batches))
        loss = self.loss(x, y)
        self.backward(loss)
        self.average_gradients()
        self.update()
        self.steps += 1
        self.log(loss)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return next_token_loss(self.forward(x), y)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self.model(x)

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def gradients(self) -> list[Tensor]:
        return [p.grad for p in self.model.parameters() if p.grad is not None]

    def average_gradients(self) -> None:
        """Replace the gradients by their means over the ranks, in one collective."""
        self.group.start_mean(*self.gradients()).wait()

    def update(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def log(self, loss: Tensor) -> None:
        """Note the mean loss of every `log_every` steps; only then does the program wait for the device."""
        self.sum += loss.detach()
        if self.steps % self.log_every == 0:
            self.logged.append(self.sum.item() / self.log_every)
            self.sum.zero_()
