"""Train on practice ranks, in any layout of 1 to 8 ranks, and train the same model in plain PyTorch to compare with."""

import functools
from contextlib import contextmanager
from typing import NamedTuple
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F

from labs_helpers.communication import Mesh
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.practice.groups import practice_groups
from labs_helpers.training import trainer as trainer_module
from labs_helpers.training.datasets import Text
from labs_helpers.training.evaluation import validate
from labs_helpers.training.model_part import first_weights
from labs_helpers.training.places import Place
from labs_helpers.training.settings import Settings
from labs_helpers.training.traffic import formula
from labs_helpers.training.trainer import Trainer
from labs_helpers.training.whole_state import gather_whole_state, load_whole_state
from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.model import RMSNorm
from labs_helpers.transformer.train import adamw, learning_rate

STEPS, LENGTH, VOCABULARY = 2, 4, 32
MAX_NORM = 0.1  # less than the gradients' norm, so that every step clips
VALIDATION = 7  # sequences: no number of ranks divides them


class Trained(NamedTuple):
    """The losses of all steps, the result of `validate`, and the whole model with its moments, by name."""

    losses: list
    validation: dict
    state: dict


class OfRank(NamedTuple):
    """What one rank found. sent, by_formula: (bytes, messages) of the last step. tied: its copy of the tied weight."""

    losses: list
    validation: dict
    state: dict
    sent: tuple
    by_formula: tuple
    tied: np.ndarray | None


def settings(dp=1, pp=1, tp=1, *, layers=4, tied=True, sequences=2, dtype="float64", **others):
    """Settings of a small model, with micro-batches of `sequences`."""
    config = TransformerConfig(VOCABULARY, layers, width=16, heads=4, hidden=32, context=LENGTH, tied=tied)
    m = others.get("micro_batches") or (1 if pp == 1 else 2 * pp)
    batch = others.pop("batch", dp * m * sequences)
    found = Settings(dp, tp, "text", config, STEPS, batch, LENGTH, dtype=dtype, pp=pp, bucket_mb=0.004, **others)
    found.check(dp * pp * tp)
    return found


def data_of(wanted):
    values = np.random.default_rng(0)
    held_out = values.integers(VOCABULARY, size=(VALIDATION, LENGTH + 1))
    text = values.integers(VOCABULARY, size=1000).astype(np.uint8)
    return Text(text, (held_out[:, :-1], held_out[:, 1:]), wanted.batch, LENGTH, wanted.seed)


def exact_norm(self, x):
    """`RMSNorm.forward` without its float32, in which one bit of a float64 number could become 1e-7."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


@contextmanager
def exactly():
    """Compute norms in the dtype of the model, and clip to MAX_NORM."""
    with mock.patch.object(trainer_module, "MAX_NORM", MAX_NORM), mock.patch.object(RMSNorm, "forward", exact_norm):
        yield


def on_practice_ranks(wanted, steps=STEPS, state=None):
    """[OfRank] of a training of `steps` steps. state: (step, whole state) to begin with."""
    with exactly():
        ran = practice_groups(_train, wanted.dp * wanted.pp * wanted.tp, wanted, steps, state, timeout=300)
    assert ran.never_waited == []
    return ran.results


def trainer_on(comm, wanted):
    """This practice rank's Trainer."""
    return Trainer(wanted, Place(Mesh(PracticeCommunication(comm), wanted.axes), "cpu", False), data_of(wanted))


def _train(comm, wanted, steps, state):
    trainer = trainer_on(comm, wanted)
    if state is not None:
        load_whole_state(trainer, state[0], list(state[1]), state[1].__getitem__)
    losses = trainer.mean_losses([trainer.train_step() for _ in range(steps)])
    whole, part = gather_whole_state(trainer), trainer.part
    tied = part.parameters[part.tied].detach().numpy().copy() if part.tied else None
    by_formula = formula(wanted, trainer.pp.rank, trainer.update.buckets if trainer.dp.size > 1 else 0)
    return OfRank(losses, validate(trainer), whole, trainer.sent, by_formula, tied)


@functools.cache
def in_one_process(wanted, steps=STEPS):
    """Trained: lab 01's transformer in a plain loop over whole batches, in float64, from the weights of `wanted`."""
    with exactly():
        return _plain_loop(wanted, steps)


def _plain_loop(wanted, steps):
    data, model = data_of(wanted), Transformer(wanted.config, sdpa).double()
    model.load_state_dict({name: tensor.double() for name, tensor in first_weights(wanted).items()})
    optimizer, losses = adamw(model, wanted.lr), []
    for step in range(steps):
        tokens, targets = map(torch.from_numpy, data.batch(step))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, wanted.steps, wanted.lr)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        assert torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM) > MAX_NORM
        optimizer.step()
        losses.append(loss.item())
    tokens, targets = map(torch.from_numpy, data.validation)
    with torch.no_grad():
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).item()
    state = {f"model/{name}": p.detach().numpy() for name, p in model.named_parameters()}
    for moment in ("exp_avg", "exp_avg_sq"):
        state |= {f"{moment}/{name}": optimizer.state[p][moment].numpy() for name, p in model.named_parameters()}
    return Trained(losses, {"validation_loss": loss}, state)


def plain(wanted):
    """The settings of one process that trains on the same batches from the same weights."""
    return Settings(1, 1, wanted.data, wanted.config, wanted.steps, wanted.batch, wanted.length, dtype=wanted.dtype)
