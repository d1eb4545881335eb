"""Cuts by cost are optimal, and the stages together are the whole model."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.pipeline.stages import TransformerStage, cut_by_cost, equal_blocks, part_costs
from labs_helpers.transformer import SIZES, Transformer, TransformerConfig

CONFIG = TransformerConfig(16, layers=4, width=8, heads=2, hidden=12, context=8, tied=False)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 5))
def test_no_cut_has_a_cheaper_most_expensive_stage(costs, stages):
    if stages > len(costs):
        with pytest.raises(ValueError, match="parts do not make"):
            cut_by_cost(costs, stages)
        return
    spans = cut_by_cost(costs, stages)
    assert [start for start, _ in spans] == [0, *(stop for _, stop in spans[:-1])]
    assert spans[-1][1] == len(costs)
    assert all(start < stop for start, stop in spans)
    best = min(
        max(sum(costs[a:b]) for a, b in itertools.pairwise((0, *inner, len(costs))))
        for inner in itertools.combinations(range(1, len(costs)), stages - 1)
    )
    assert max(sum(costs[start:stop]) for start, stop in spans) == best


def test_the_output_costs_as_much_as_blocks():
    """Lab 01's 1B model on two ranks: its output, with 32,000 tokens, weighs more than a block, so the last stage has
    fewer blocks than the first."""
    (first, second) = cut_by_cost(part_costs(SIZES["1b"], 1024), 2)
    assert first[1] - first[0] - 1 > second[1] - second[0] - 1


@pytest.mark.parametrize("spans", [*(equal_blocks(4, stages) for stages in (1, 2, 3, 4)), [(0, 1), (1, 5), (5, 6)]])
@pytest.mark.parametrize("tied", [True, False])
def test_the_stages_make_the_whole_model(spans, tied):
    torch.manual_seed(0)
    config = dataclasses.replace(CONFIG, tied=tied)
    whole = Transformer(config)
    stages = []
    for span in spans:
        part = Transformer(config)
        part.load_state_dict(whole.state_dict())
        stages.append(TransformerStage(part, span))
    tokens = torch.randint(16, (2, 6))
    x = tokens
    for stage in stages:
        x = stage(x)
    torch.testing.assert_close(x, whole(tokens), rtol=0, atol=0)
    names = [name for stage in stages for name, _ in stage.model.named_parameters()]
    again = ["embedding.weight"] * (tied and len(spans) > 1)
    assert sorted(names) == sorted([name for name, _ in whole.named_parameters()] + again)
