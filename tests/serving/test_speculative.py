"""Test speculative decoding: it keeps the target's distribution, and greedy tokens are those without a draft."""

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.serving.acceptance import accept
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import FinishReason, SamplingParameters
from labs_helpers.serving.sampling import probabilities
from labs_helpers.serving.speculative import SpeculativeEngine
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import inverse
from tests.planted import planted
from tests.serving.test_engine import engine_of, finished, generated, graphs, kernels, tokens_of  # noqa: F401
from tests.serving.workloads import BYTES, ORIGIN, alone, model_of, workloads
from tests.transformer.independent import GROUPED, randomised

DRAFT = dataclasses.replace(GROUPED, layers=1, width=24, heads=3, kv_heads=1, hidden=30)
N = 200_000


def chi_square(counts, p):
    """Return Pearson's statistic over its quantile of 1 − 1e-6, as Wilson and Hilferty approximate it."""
    expected = p / p.sum() * counts.sum()
    kept = expected > 0
    assert (counts[~kept] == 0).all()
    statistic = float(((counts - expected)[kept] ** 2 / expected[kept]).sum())
    freedom = int(kept.sum()) - 1
    quantile = freedom * (1 - 2 / (9 * freedom) + 4.753 * (2 / (9 * freedom)) ** 0.5) ** 3
    return statistic / quantile


def distributions(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(*shape, generator=generator, dtype=torch.float64), -1)


def sequences(rule, p, q, seed=5):
    """Return counts of the tokens that start a sequence of two: from p[0] and, after token x, p[1 + x]; with a draft q
    of the same form. rule: as `accept`. A sequence that is too short goes on with draws from p."""
    V, generator = p.shape[-1], torch.Generator().manual_seed(seed)
    u = torch.rand(3, N, 3, generator=generator, dtype=torch.float64)
    first = inverse(q[0].expand(N, V), u[1, :, 0])
    second = inverse(q[1 + first], u[1, :, 1])
    of_target = torch.stack([p[0].expand(N, V), p[1 + first], p[0].expand(N, V)], 1)
    of_draft = torch.stack([q[0].expand(N, V), q[1 + first]], 1)
    tokens, accepted = rule(of_target, of_draft, torch.stack([first, second], 1), u[2, :, :2], u[0])
    follow = inverse(p[1 + tokens[:, 0]], u[1, :, 2])
    second = torch.where(accepted > 0, tokens[:, 1], follow)
    return (tokens[:, 0] * V + second).bincount(minlength=V * V).double()


def pairs(p):
    return (p[0][:, None] * p[1:]).flatten()


@pytest.mark.parametrize("seed", range(3))
def test_accepted_tokens_have_the_target_s_distribution(seed):
    p, q = distributions(seed, 5, 4), distributions(seed + 10, 5, 4)
    p[1, 2] = q[2, 1] = 0
    p, q = (x / x.sum(-1, keepdim=True) for x in (p, q))
    assert chi_square(sequences(accept, p, q), pairs(p)) < 1
    assert chi_square(sequences(accept, p, p), pairs(p)) < 1


MISTAKES = {
    "everything is accepted": ("u * of_draft < of_target", "u < 2"),
    "p / q the wrong way round": ("u * of_draft < of_target", "u * of_target < of_draft"),
    "the replacement from p": ("(p[:, :K] - q).clamp(min=0)", "p[:, :K]"),
    "one number for both": ("inverse(rest, v)", "inverse(rest, torch.cat([u, v[:, -1:]], 1))"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_biased_acceptance_shows(mistake, tmp_path):
    wrong = planted(accept, tmp_path, MISTAKES[mistake])
    p, q = distributions(0, 5, 4), distributions(10, 5, 4)
    assert chi_square(sequences(wrong, p, q), pairs(p)) > 1


def test_the_acceptance_rate_is_what_the_distributions_share():
    p, q = distributions(1, 1, 6).expand(N, 6), distributions(2, 1, 6).expand(N, 6)
    u = torch.rand(3, N, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    _, accepted = accept(torch.stack([p, p], 1), q[:, None], inverse(q, u[0, :, 0])[:, None], u[1, :, :1], u[2])
    assert abs(accepted.double().mean() - torch.minimum(p[0], q[0]).sum()) < 5 * (0.25 / N) ** 0.5


def test_rows_without_proposals_and_equal_distributions():
    p, q = distributions(3, 2, 3, 4), torch.zeros(2, 2, 4, dtype=torch.float64)
    q[1, 0] = p[1, 0]
    v = torch.full((2, 3), 0.4, dtype=torch.float64)
    proposed = torch.tensor([[3, 3], [1, 3]])
    tokens, accepted = accept(p, q, proposed, torch.zeros(2, 2).double(), v)
    assert accepted.tolist() == [0, 1] and tokens[1, 0] == 1
    assert tokens[0, 0] == inverse(p[:1, 0], v[:1, 0]) and tokens[1, 1] == inverse(p[1:, 1], v[1:, 1])
    tokens, accepted = accept(p[:, :2], p[:, :1], proposed[:, :1], torch.ones(2, 1).double(), v[:, :2])
    assert accepted.tolist() == [0, 0] and torch.equal(tokens[:, 0], inverse(p[:, 0], v[:, 0]))


def speculative(draft=None, **options):
    draft = model_of(DRAFT, seed=1) if draft is None else draft
    return engine_of(None, lambda model, **rest: SpeculativeEngine(model, draft, **rest), **options)


@settings(max_examples=40)
@given(
    work=workloads,
    proposals=st.integers(1, 5),
    slots=st.integers(1, 4),
    size=st.sampled_from([1, 4, 16]),
    spare=st.integers(0, 12),
    static=st.booleans(),
    sharing=st.booleans(),
)
def test_greedy_tokens_are_those_without_a_draft(work, proposals, slots, size, spare, static, sharing):
    blocks = max(-(-(len(prompt) + how.max_tokens - 1) // size) for (prompt, how), _, _ in work) + spare
    engine = speculative(
        proposals=proposals, blocks=blocks, block_size=size, slots=slots, budget=slots * 6 + 3, static=static,
        sharing=sharing,
    )  # fmt: skip
    asked, outputs = {}, []
    for (prompt, how), wait, stays in work:
        greedy = dataclasses.replace(how, temperature=0)
        asked[engine.add(prompt, greedy)] = prompt, greedy
        for _ in range(wait):
            outputs += engine.step()
        if stays == 0:
            engine.cancel(0)
    outputs += finished(engine)
    found, ends = tokens_of(outputs), {output.request: output.finished for output in outputs if output.finished}
    assert ends.keys() == asked.keys()
    for number, (prompt, how) in asked.items():
        expected = alone(prompt, how)
        assert found[number] == expected[: len(found[number])]
        assert len(found[number]) == len(expected) or ends[number] is FinishReason.CANCELLED


def test_kernels_and_graphs_generate_the_same_tokens(request):
    def make(model, **options):
        wide = dataclasses.replace(DRAFT, width=48)
        return SpeculativeEngine(model, model_of(wide, torch.float32, 1), 2, **options)

    plain = generated(make, graph=False)
    request.getfixturevalue("kernels")
    request.getfixturevalue("graphs")
    assert generated(make, graph=True) == plain


def test_the_target_as_its_own_draft_is_always_right():
    engine = speculative(model_of(), proposals=3, block_size=4)
    for seed in range(3):
        engine.add(ORIGIN[: 4 + seed], SamplingParameters(21, seed=seed, temperature=seed / 2))
    outputs = finished(engine)
    assert engine.accepted == engine.proposed > 0
    assert max(len(output.tokens) for output in outputs) == 4
    assert len(outputs) == 3 * (1 + 5)  # a first token, and four per step
    assert engine.statistics().steps == 1 + 5


def test_the_draft_s_blocks_are_copied_with_the_target_s():
    engine = speculative(model_of(), proposals=3, block_size=4)
    for _ in range(2):
        engine.add(ORIGIN[:8], SamplingParameters(9, temperature=0))
        cached = finished(engine)[-1].cached_tokens
    assert cached == 7 and engine.accepted == engine.proposed > 0


def test_sampled_tokens_have_the_target_s_distribution_end_to_end():
    """The first three tokens of many requests with their own seeds, on a model of three tokens."""
    target, draft = (
        randomised(Transformer(dataclasses.replace(config, vocabulary=3, width=24, heads=3, kv_heads=1)), seed).double()
        for seed, config in enumerate((GROUPED, DRAFT))
    )
    engine = SpeculativeEngine(target, draft, 2, slots=256, budget=4096, blocks=1024, block_size=4, most_waiting=9999)
    how = SamplingParameters(3, temperature=0.9, top_p=0.95)
    prompt, count = [0, 2, 1], 4000
    for seed in range(count):
        engine.add(prompt, dataclasses.replace(how, seed=seed))
    found = tokens_of(finished(engine))
    counts = torch.zeros(3, 3, 3, dtype=torch.float64)
    for tokens in found.values():
        counts[tokens] += 1
    expected = torch.ones(3, 3, 3, dtype=torch.float64)
    columns = (torch.tensor([how.temperature]), torch.tensor([0]), torch.tensor([how.top_p]))
    for tokens in itertools.product(range(3), repeat=3):
        for index, token in enumerate(tokens):
            with torch.no_grad():
                logits = target(torch.tensor([[*prompt, *tokens[:index]]]))[:, -1]
            expected[tokens] *= probabilities(logits, *columns)[0, token]
    assert 0.2 < engine.accepted / engine.proposed < 0.95
    assert chi_square(counts.flatten(), expected.flatten()) < 1


def test_text_ends_at_a_stop_string_amid_accepted_tokens():
    prompt, how = tuple(b"abc"), SamplingParameters(30, temperature=0)
    whole = bytes(alone(prompt, how, BYTES)).decode(errors="replace")
    model = model_of(BYTES)
    engine = SpeculativeEngine(model, model, 7)
    engine.add(prompt, dataclasses.replace(how, stop=(whole[4:6],)))
    plain = Engine(model)
    plain.add(prompt, dataclasses.replace(how, stop=(whole[4:6],)))
    for one, other in zip(*(finished(each)[-1:] for each in (engine, plain)), strict=True):
        assert one.finished is other.finished is FinishReason.STOP
        assert one.completion_tokens == other.completion_tokens


def test_a_draft_that_does_not_fit_is_named():
    for change, words in (({"vocabulary": 61}, "the draft has 61 tokens"), ({"context": 39}, "a context of 39")):
        with pytest.raises(ValueError, match=words):
            SpeculativeEngine(model_of(), Transformer(dataclasses.replace(DRAFT, **change)))
    with pytest.raises(ValueError, match="proposals is 0"):
        SpeculativeEngine(model_of(), model_of(DRAFT), 0)
