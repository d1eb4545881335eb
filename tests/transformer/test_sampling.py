"""Test sampling: the kernel and plain PyTorch choose the same tokens, from the right distribution."""

import pytest
import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer.kernels.sample import MOST_TOKENS, SampleLaunch
from labs_helpers.transformer.sampling import Sampling, draw, sample, uniform

HERE = this_machine()


def appended(logits, how, lengths, by_kernel):
    """Return (tokens, current, lengths) after one call for sequences of these lengths."""
    B, device = len(logits), HERE.device if by_kernel else "cpu"
    state = [torch.tensor(lengths, dtype=torch.int32), torch.zeros(B, max(lengths) + 3).long(), torch.zeros(B).long()]
    lengths, tokens, current = (x.to(device) for x in state)
    seed = torch.tensor(how.seed, device=device)
    if by_kernel:
        SampleLaunch(logits.shape[1], how)(logits.to(device), seed, lengths, tokens, current)
    else:
        sample(logits, seed, lengths, tokens, current, how)
    return [x.cpu() for x in (tokens, current, lengths)]


@pytest.mark.parametrize("vocabulary", [5, 128, 1000])
@pytest.mark.parametrize(
    "how", [Sampling(), Sampling(1.0), Sampling(0.3, 4, seed=-3), Sampling(2.0, 900, seed=2**40)], ids=str
)
def test_the_kernel_appends_the_same_tokens_as_plain_pytorch(how, vocabulary):
    logits = 3 * torch.randn(4, vocabulary, generator=torch.Generator().manual_seed(vocabulary))
    lengths = [7, 0, 100, 3]
    found, expected = (appended(logits, how, lengths, by_kernel) for by_kernel in (True, False))
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    tokens, current, after = expected
    assert after.tolist() == [8, 1, 101, 4]
    assert torch.equal(tokens[torch.arange(4), after.long()], current)
    assert (tokens != 0).sum() <= 4


def test_the_uniform_number_is_philox_in_both():
    vocabulary = 4096  # equally likely, so the token is ⌊4096 · u⌋
    for seed, place in ((0, 1), (12345, 77), (2**63 - 1, 2), (-1, 1000)):
        _, current, _ = appended(torch.zeros(3, vocabulary), Sampling(1.0, seed=seed), [place - 1] * 3, True)
        assert current.tolist() == [int(vocabulary * uniform(seed, row, place)) for row in range(3)]
    assert uniform(0, 0, 0) == (0x6627E8D5 >> 8) * 2.0**-24  # a known answer of Random123


def test_a_draw_follows_the_softmax():
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0]])
    u = torch.tensor([uniform(1, row, 1) for row in range(20_000)])
    for how in (Sampling(1.0), Sampling(0.5, 2)):
        p = torch.softmax(logits[0] / how.temperature, 0)
        if how.top_k:
            p = torch.where(logits[0] >= 1.0, p, 0)
        counts = draw(logits.expand(20_000, 4), u, how).bincount(minlength=4)
        spread = (20_000 * p / p.sum() * (1 - p / p.sum())).sqrt()
        assert ((counts - 20_000 * p / p.sum()).abs() <= 5 * spread).all()


@pytest.mark.parametrize("by_kernel", [True, False])
def test_ties_of_the_last_of_the_top_k_stay_and_no_token_with_probability_0_is_drawn(by_kernel):
    logits = torch.full((1, 9), -5.0)
    logits[0, [2, 4, 7]] = torch.tensor([1.0, 0.5, 0.5])
    seen = {int(appended(logits, Sampling(1.0, 2, seed=seed), [0], by_kernel)[1]) for seed in range(60)}
    assert seen == {2, 4, 7}
    logits[0, [0, 8]] = -torch.inf
    seen = {int(appended(logits, Sampling(50.0, seed=seed), [0], by_kernel)[1]) for seed in range(60)}
    assert seen == set(range(1, 8))


def test_a_number_that_rounds_up_to_the_whole_draws_the_last_token_with_a_probability():
    logits = torch.tensor([[0.0, 0.0, -torch.inf]])
    assert draw(logits, torch.tensor([1.0]), Sampling(1.0)).tolist() == [1]


def test_settings_that_do_not_fit_are_named():
    for wrong, words in (
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0"),
        ({"seed": 2**63}, "seed is"),
    ):
        with pytest.raises(ValueError, match=words):
            Sampling(**wrong)
    with pytest.raises(ValueError, match="the sampling kernel takes"):
        SampleLaunch(MOST_TOKENS + 1, Sampling())
