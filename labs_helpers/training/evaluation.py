"""Evaluate the model on the validation data, on the ranks of any layout and without backward passes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.pipeline import Pipeline
from labs_helpers.pipeline.schedules import forward_only
from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy
from labs_helpers.training.trainer import Trainer


@torch.no_grad()
def validate(trainer: Trainer) -> dict[str, float]:
    """Return {"validation_loss": nats per token}, with "validation_accuracy" for labeled data.

    The accuracy is the share of sequences whose last target has the largest logit. Every rank calls this; each copy of
    the model validates on a part of the data.
    """
    settings, dp, pp, tp = trainer.settings, trainer.dp, trainer.pp, trainer.tp
    device = trainer.place.device
    x, y = (torch.from_numpy(part).tensor_split(dp.size)[dp.rank] for part in trainer.data.validation)
    inputs, targets = micro_batches(x, y, settings.micro_batch, pp.size)

    def sums(logits: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the sequences' losses, the number of right answers, and the number of sequences."""
        if not len(targets):
            return torch.zeros(3, dtype=torch.float64, device=device)
        logits = logits[: len(targets)]
        loss = vocabulary_parallel_cross_entropy(logits, targets, tp)
        right = (tp.all_gather(logits[:, -1], dim=-1).argmax(-1) == targets[:, -1]).sum()
        return torch.stack([loss * len(targets), right, torch.tensor(len(targets), device=device)]).double()

    total = torch.zeros(3, dtype=torch.float64, device=device)
    if inputs:
        schedule = forward_only(pp.size, len(inputs), settings.chunks)
        shape, dtype = trainer.activation, trainer.pipeline.dtype
        pipeline = Pipeline(schedule, trainer.part.stages, sums, pp, shape, dtype)
        for part in pipeline.run([x.to(device) for x in inputs], [y.to(device) for y in targets]):
            total += part
    total = dp.all_reduce(total)
    pp.broadcast(total, trainer.last_rank)
    loss_sum, right_sum, sequences = total.tolist()
    accuracy = {"validation_accuracy": right_sum / sequences} if trainer.data.labelled else {}
    return {"validation_loss": loss_sum / sequences, **accuracy}


def micro_batches(x: Tensor, y: Tensor, size: int, multiple: int) -> tuple[list[Tensor], list[Tensor]]:
    """Cut inputs and targets (n, length) into micro-batches of `size` sequences, the last one smaller.

    Messages of a pipeline have one shape, and interleaved schedules need groups of micro-batches. So if `multiple` is
    more than 1, rows of zeros fill the inputs up to a multiple of so many micro-batches; they have no targets.
    """
    if multiple > 1:
        rows = -len(x) % (size * multiple)
        x = F.pad(x, (0, 0, 0, rows))
    inputs = list(x.split(size)) if len(x) else []
    return inputs, [y[size * i : size * (i + 1)] for i in range(len(inputs))]
