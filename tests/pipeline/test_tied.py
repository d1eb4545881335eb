"""Test that a tied weight gets the gradients of both stages, with the same bits on both ranks."""

import torch

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.schedules import interleaved, one_f_one_b
from labs_helpers.pipeline.stages import TransformerStage
from labs_helpers.pipeline.tied import share_tied_weight, sum_tied_gradients
from labs_helpers.practice.groups import practice_groups
from labs_helpers.transformer import Transformer, TransformerConfig

SIZES = {"vocabulary": 8, "layers": 2, "width": 4, "heads": 1, "hidden": 8}


def test_both_ranks_get_the_sum_and_the_others_take_no_part():
    def on_rank(comm):
        group, gradient = PracticeCommunication(comm), torch.tensor([0.1, 1e8]) * (comm.rank + 1)
        if comm.rank != 1:
            sum_tied_gradients(gradient, one_f_one_b(3, 4), group)
        return gradient

    ran = practice_groups(on_rank, 3)
    first, between, last = ran.results
    assert torch.equal(first, torch.tensor([0.1, 1e8]) + torch.tensor([0.1, 1e8]) * 3) and torch.equal(first, last)
    assert torch.equal(between, torch.tensor([0.1, 1e8]) * 2) and ran.never_waited == []


def test_a_gradient_on_one_rank_is_already_the_sum():
    """In a schedule shaped like a V, the first rank holds the first and the last stage."""
    shaped_like_v = Schedule("V", ((), ()), (0, 1, 1, 0), 2)
    for schedule in (interleaved(1, 2), shaped_like_v):

        def on_rank(comm, schedule=schedule):
            gradient = torch.ones(2)
            sum_tied_gradients(gradient, schedule, PracticeCommunication(comm))
            return gradient.tolist()

        assert practice_groups(on_rank, schedule.ranks).results[0] == [1, 1]


def stages_of(tied):
    model = [Transformer(TransformerConfig(**SIZES, tied=tied)) for _ in range(2)]
    return {0: TransformerStage(model[0], (0, 2)), 3: TransformerStage(model[1], (2, 4))}


def test_stages_on_one_rank_share_the_weight():
    stages = stages_of(tied=True)
    share_tied_weight(stages)
    weight = stages[0].model.embedding.weight
    assert stages[3].model.embedding.weight is weight
    stages[3](stages[0](torch.zeros(1, 2, dtype=torch.int64))).sum().backward()
    assert weight.grad.abs().sum(1).all()  # also of tokens that only the output has


def test_only_a_tied_weight_is_shared_and_only_between_the_first_and_the_last_stage():
    untied = stages_of(tied=False)
    share_tied_weight(untied)
    assert untied[3].model.embedding is None
    alone = {3: stages_of(tied=True)[3]}
    share_tied_weight(alone)
    assert alone[3].model.embedding is not None
