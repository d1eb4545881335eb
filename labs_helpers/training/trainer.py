"""One rank's part of the training: its stages, its optimizer, and the steps."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from labs_helpers.communication.gradient_average import MEGABYTE
from labs_helpers.pipeline import Pipeline
from labs_helpers.pipeline.split_backward import leave_weights_for_later
from labs_helpers.pipeline.tied import sum_tied_gradients
from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy
from labs_helpers.tensor_parallel.data import split_data
from labs_helpers.tensor_parallel.sharded_gradients import clip_gradients
from labs_helpers.training.datasets import Array, Data
from labs_helpers.training.model_part import ModelPart
from labs_helpers.training.pipelining import make_schedule
from labs_helpers.training.places import Place
from labs_helpers.training.settings import Settings
from labs_helpers.training.updates import ReplicatedUpdate, Update
from labs_helpers.training.zero1 import ShardedUpdate
from labs_helpers.transformer.train import learning_rate

MAX_NORM = 1.0


class Trainer:
    """One rank's stages of the model and their optimizer, in a mesh with the axes dp, pp and tp.

    step: the number of completed steps. sent: (bytes, messages) that left this rank in the last step, without the
    eight bytes of the gradient norm on each axis.
    """

    def __init__(self, settings: Settings, place: Place, data: Data) -> None:
        self.settings, self.place, self.data = settings, place, data
        self.dp, self.pp, self.tp = (place.mesh[axis] for axis in ("dp", "pp", "tp"))
        schedule = make_schedule(settings.schedule, settings.pp, settings.micro_batches_per_step, settings.chunks)
        self.part = ModelPart(settings, place.mesh, place.device, schedule)
        later = leave_weights_for_later(self.part.model) if schedule.splits_backward else None
        dtype = getattr(torch, settings.dtype)
        loss = partial(vocabulary_parallel_cross_entropy, group=self.tp)
        self.pipeline = Pipeline(schedule, self.part.stages, loss, self.pp, self.activation, dtype, later)
        bucket_bytes, order = int(settings.bucket_mb * MEGABYTE), schedule.orders[self.pp.rank]
        self.update: Update = (
            ShardedUpdate(self.part, settings.lr, bucket_bytes)
            if settings.zero
            else ReplicatedUpdate(self.part, settings.lr, bucket_bytes, order)
        )
        self.pipeline.watch = self.update.around
        self.last_rank = schedule.rank_of[-1]  # of the pipeline: it computes the loss
        self.groups = list(place.mesh.values())
        self.step = 0
        self.sent = (0, 0)

    @property
    def activation(self) -> tuple[int, int, int]:
        """The shape of the activations between stages: sequences of a micro-batch, tokens, width."""
        length = self.settings.length // (self.tp.size if self.settings.sequence_parallel else 1)
        return self.settings.micro_batch, length, self.settings.config.width

    def train_step(self) -> Tensor:
        """Run one step on this rank's part of the batch; return its mean loss, a tensor on the device.

        Of a pipeline, only the rank of the last stage knows the loss; the others return 0: see `mean_losses`.
        """
        settings, update = self.settings, self.update
        for group in update.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, settings.steps, settings.lr)
        self._count_from_0()
        update.clear()
        tokens, targets = self.mine(*self.data.batch(self.step))
        losses = self.pipeline.run(tokens.split(settings.micro_batch), targets.split(settings.micro_batch))
        update.finish()
        if update.tied_gradient is not None:
            sum_tied_gradients(update.tied_gradient, self.pipeline.schedule, self.pp)
        before = self._counted()
        clip_gradients(update.gradients, self.tp, MAX_NORM, [self.pp, self.dp] if settings.zero else [self.pp])
        self._count_from_0()
        update.apply()
        after = self._counted()
        self.sent = before[0] + after[0], before[1] + after[1]
        self.step += 1
        return torch.stack(losses).mean() if losses else tokens.new_zeros((), dtype=self.pipeline.dtype)

    def _count_from_0(self) -> None:
        for group in self.groups:
            group.reset()

    def _counted(self) -> tuple[int, int]:
        return sum(group.bytes_sent for group in self.groups), sum(group.messages_sent for group in self.groups)

    def wait_for_device(self) -> None:
        """Wait until a GPU has finished its work."""
        if self.place.device != "cpu":
            torch.cuda.synchronize()

    def mine(self, tokens: Array, targets: Array) -> tuple[Tensor, Tensor]:
        """Return this rank's part of a batch on its device."""
        x, y = split_data(tokens, targets, 1, self.dp.size, self.dp.rank)
        return torch.from_numpy(x).to(self.place.device), torch.from_numpy(y).to(self.place.device)

    def mean_losses(self, losses: list[Tensor]) -> list[float]:
        """Average the losses of `train_step` over the data-parallel ranks, for all stages; every rank calls this."""
        if not losses:
            return []
        means = self.dp.all_reduce(torch.stack(losses)) / self.dp.size
        self.pp.broadcast(means, self.last_rank)
        return means.tolist()
