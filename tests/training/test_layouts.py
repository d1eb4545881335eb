"""Test that dp × pp × tp practice ranks train like one process: losses, parameters, moments and validation.

Every case clips its gradients, and most have several micro-batches and a tied embedding.
"""

import itertools

import numpy as np
import pytest
import torch

from labs_helpers.pipeline.measured import Recorder
from labs_helpers.practice.groups import practice_groups
from labs_helpers.training.evaluation import micro_batches
from tests.training.layouts import OfRank, exactly, in_one_process, on_practice_ranks, plain, settings, trainer_on

SEQUENCE, AGAIN = {"sequence_parallel": True}, {"checkpoint_activations": True}
INTERLEAVED = {"schedule": "interleaved", "chunks": 2}
QUICK = [
    settings(micro_batches=3),
    settings(dp=4, zero=1),
    settings(pp=2),
    settings(dp=2, pp=2, zero=1),
    settings(dp=2, pp=2, schedule="GPipe", micro_batches=3, tied=False),
    settings(dp=2, pp=2, zero=1, **INTERLEAVED),
    settings(dp=2, micro_batches=2, **INTERLEAVED),  # the first and the last stage share a rank
    settings(pp=3, schedule="ZB-H1", **AGAIN),
    settings(pp=2, tp=2, schedule="ZB-H1", **SEQUENCE),
    settings(pp=2, tp=2, scheme="naive", **AGAIN),
    settings(dp=2, pp=2, tp=2, layers=2, zero=1, sequences=1, **SEQUENCE, **AGAIN),
    settings(pp=2, micro_batches=1),
]
FLOAT32 = [
    settings(dp=2, pp=2, zero=1, dtype="float32"),
    settings(pp=2, tp=2, schedule="ZB-H1", dtype="float32", **SEQUENCE),
]


def every_layout():
    """All layouts of up to 8 ranks that the model allows, with all schedules, and with and without ZeRO; the other
    settings take turns."""
    schedules = ({}, {"schedule": "GPipe"}, {"schedule": "ZB-H1"}, INTERLEAVED)
    turns = itertools.cycle(itertools.product([True, False], [{}, AGAIN], [{}, SEQUENCE, {"scheme": "naive"}]))
    for dp, pp, tp in itertools.product(range(1, 9), range(1, 9), (1, 2, 4)):
        if dp * pp * tp > 8:
            continue
        for schedule, zero in itertools.product(schedules, (0, 1)):
            if zero and dp == 1 or schedule is INTERLEAVED and pp > 4:
                continue
            tied, again, scheme = next(turns)
            given = {**schedule, **again, **(scheme if tp > 1 else {})}
            yield settings(dp, pp, tp, layers=6, tied=tied, sequences=1, zero=zero, **given)


def name(wanted):
    options = [wanted.schedule, f"{wanted.micro_batches_per_step} micro-batches", wanted.dtype]
    options += ["tied"] * wanted.config.tied + ["zero"] * wanted.zero + ["again"] * wanted.checkpoint_activations
    options += [wanted.scheme] + ["sequence"] * wanted.sequence_parallel
    return f"{wanted.dp} × {wanted.pp} × {wanted.tp}, {', '.join(options)}"


def check(wanted, bound):
    """Assert that all differences are at most `bound`: absolute for losses, relative to the norm for tensors."""
    expected, ranks = in_one_process(plain(wanted)), [OfRank(*rank) for rank in on_practice_ranks(wanted)]
    for rank in ranks:
        assert np.abs(np.subtract(rank.losses, expected.losses)).max() <= bound
        assert abs(rank.validation["validation_loss"] - expected.validation["validation_loss"]) <= bound
        assert rank.sent[1] == rank.by_formula[1]
        zeros = wanted.zero and 16 % wanted.dp  # which round up ZeRO's buckets; all sizes are multiples of 16
        assert 0 <= rank.sent[0] - rank.by_formula[0] <= (8 * wanted.dp * rank.sent[1] if zeros else 0)
    first, *others = ranks
    assert first.state.keys() == expected.state.keys() and not any(rank.state for rank in others)
    for key, value in expected.state.items():
        assert np.linalg.norm(first.state[key] - value) <= bound * np.linalg.norm(value), key
    copies = [rank.tied for rank in ranks if rank.tied is not None]
    whole = [np.concatenate(copies[i : i + wanted.tp]) for i in range(0, len(copies), wanted.tp)]
    assert len(whole) == (2 * wanted.dp if wanted.config.tied and wanted.pp > 1 else 0)
    assert all(np.array_equal(copy, first.state["model/embedding.weight"]) for copy in whole)


@pytest.mark.parametrize("wanted", QUICK, ids=name)
def test_a_layout_trains_like_one_process(wanted):
    check(wanted, 1e-9)


@pytest.mark.soak
@pytest.mark.parametrize("wanted", [*every_layout()], ids=name)
def test_every_layout_trains_like_one_process(wanted):
    check(wanted, 1e-9)


@pytest.mark.parametrize("sequences, multiple, rows", [
    (7, 1, [2, 2, 2, 1]), (7, 2, [2, 2, 2, 2]), (7, 3, [2] * 6), (1, 3, [2] * 3), (0, 3, []), (12, 3, [2] * 6),
])  # fmt: skip
def test_all_micro_batches_of_a_validation_have_one_shape_in_a_pipeline(sequences, multiple, rows):
    x = torch.arange(1, 3 * sequences + 1).view(sequences, 3)
    inputs, targets = micro_batches(x, -x, 2, multiple)
    assert [len(one) for one in inputs] == rows and len(targets) == len(inputs)
    assert all(torch.equal(one[: len(target)], -target) for one, target in zip(inputs, targets, strict=True))
    assert sum(map(len, targets)) == sequences


def test_a_step_can_be_recorded():
    """The recorder watches the same computations as the averages of gradients, and changes neither."""
    wanted = settings(dp=2, pp=2)

    def train(comm):
        trainer = trainer_on(comm, wanted)
        with Recorder(trainer.pipeline) as recorder:
            loss = trainer.train_step()
        return trainer.mean_losses([loss]), [bar.action for bar in recorder.bars()]

    with exactly():
        for losses, actions in practice_groups(train, 4, timeout=100).results:
            assert losses == pytest.approx(in_one_process(plain(wanted)).losses[:1], abs=1e-9)
            assert len(actions) == 2 * wanted.micro_batches_per_step


def roundings(wanted):
    """The most roundings, one after another, between a weight and a gradient: a sum of n products has n.

    Through a block: two norms; the products with wq (or wk, wv), scores, softmax, values and wo; gate (or up), SiLU and
    down. Through the output: a norm, the logits and their softmax. The backward pass goes back through as many, and
    adds up the tokens.
    """
    config = wanted.config
    norm, softmax = config.width + 4, wanted.length + 3
    attention = norm + config.width + 3 + config.head_dim + softmax + wanted.length + config.width + 1
    mlp = norm + config.width + 6 + config.hidden + 1
    output = norm + config.width + config.vocabulary + 3
    return 2 * (config.layers * (attention + mlp) + output) + wanted.batch * wanted.length


@pytest.mark.parametrize("wanted", FLOAT32, ids=name)
def test_float32_differs_by_no_more_than_roundings(wanted):
    """Compare loss and gradient of the first step with those of float64.

    n roundings change a result without cancellation by up to n · u, u = 2⁻²⁴ (Higham, Accuracy and Stability of
    Numerical Algorithms, 2002, section 3.1). Cancellation makes this larger, and random signs make it smaller, by about
    √n. A micro-batch that is missing changes a gradient by about 1 / micro-batches, a hundred times as much as the
    bound allows. Later steps are not compared: AdamW divides by the gradient's size, so that a small change of a tiny
    gradient is a whole step.
    """
    bound = roundings(wanted) * 2.0**-24
    assert bound < 0.01 / wanted.micro_batches_per_step
    expected = in_one_process(plain(wanted), steps=1)
    first = on_practice_ranks(wanted, steps=1)[0]
    assert abs(first.losses[0] / expected.losses[0] - 1) <= bound
    for key, gradient in expected.state.items():
        if key.startswith("exp_avg/"):
            assert np.linalg.norm(first.state[key] - gradient) <= bound * np.linalg.norm(gradient), key
