"""Test the comparison of greedy tokens in 16-bit floats."""

import dataclasses

import pytest
import torch

from labs_helpers.serving.agreement import Agreement, agreement, bound
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.transformer.model import Transformer
from tests.serving.test_engine import finished, tokens_of
from tests.serving.workloads import ORIGIN
from tests.transformer.independent import GROUPED, randomised

GREEDY = SamplingParameters(24, temperature=0)
PROMPTS = [ORIGIN[: 3 + i] for i in range(12)]


def answers(model, together):
    engines = [Engine(model, slots=5, budget=9, block_size=4)] if together else [Engine(model) for _ in PROMPTS]
    for number, prompt in enumerate(PROMPTS):
        engines[number % len(engines)].add(prompt, GREEDY)
    return [tokens for engine in engines for _, tokens in sorted(tokens_of(finished(engine)).items())]


def test_bfloat16_differs_in_near_ties_only():
    model = randomised(Transformer(dataclasses.replace(GROUPED, tied=True))).to(torch.bfloat16)
    found, alone = answers(model, True), answers(model, False)
    result = agreement(model, PROMPTS, found, alone)
    assert result.equal + result.near_ties == 12 and result.wrong == () and result.equal >= 6


def test_another_token_is_wrong():
    model = randomised(Transformer(GROUPED)).to(torch.bfloat16)
    alone = answers(model, False)
    with torch.no_grad():
        worst = model(torch.tensor([[*PROMPTS[2], *alone[2][:7]]]))[0, -1].argmin()
    found = list(alone)
    found[2] = (*alone[2][:7], int(worst), *alone[2][8:])
    assert agreement(model, PROMPTS, found, alone) == Agreement(11, 0, (2,))
    with pytest.raises(ValueError, match="request 0 has 23 tokens, and alone 24"):
        agreement(model, PROMPTS, [alone[0][:23], *alone[1:]], alone)


def test_the_bound_is_a_small_share_of_the_logits():
    logits = torch.tensor([3.0, -3.0, 3.0, -3.0])
    assert 0.3 < bound(logits, 2) < 0.31 and bound(2 * logits, 8) == 4 * bound(logits, 2)
