"""Test that every request generates what it generates alone, for every setting of the scheduler, and loses nothing."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.model import SCHEMES, quantize
from labs_helpers.serving import layer_graphs, paged_attention, passes
from labs_helpers.serving.engine import Engine, QueueFull
from labs_helpers.serving.layer_graphs import LayerGraphs
from labs_helpers.serving.request import FinishReason, SamplingParameters
from labs_helpers.transformer.model import Transformer
from tests.planted import planted
from tests.serving.workloads import BYTES, ORIGIN, alone, model_of, workloads
from tests.transformer.independent import GROUPED, randomised

GREEDY = SamplingParameters(12, temperature=0)


def engine_of(model=None, make=Engine, **options):
    """Return an engine whose blocks hold large numbers when somebody takes them: a stale position would show."""
    engine = make(model_of() if model is None else model, **options)
    usual = engine.blocks._take

    def take():
        block = usual()
        for cache in (engine.cache, *([engine.draft.cache] if hasattr(engine, "draft") else [])):
            cache.k[:, block], cache.v[:, block] = 1e3, -1e3
        return block

    engine.blocks._take = take
    return engine


def finished(engine, most=3000):
    """Return the outputs of all steps until there is no work."""
    outputs = []
    for _ in range(most):
        if not engine.has_work():
            break
        outputs += engine.step()
    assert not engine.has_work() and engine.step() == []
    assert engine.blocks.free == engine.blocks.count and not any(engine.blocks.references)
    return outputs


def tokens_of(outputs):
    found = {}
    for output in outputs:
        found[output.request] = found.get(output.request, ()) + output.tokens
    return found


@settings(max_examples=60)
@given(
    work=workloads,
    slots=st.integers(1, 5),
    more=st.integers(0, 40),
    size=st.sampled_from([1, 3, 4, 16]),
    spare=st.integers(0, 20),
    static=st.booleans(),
    ahead=st.booleans(),
    sharing=st.booleans(),
)
def test_any_workload_generates_what_each_request_generates_alone(
    work, slots, more, size, spare, static, ahead, sharing
):
    blocks = max(-(-(len(prompt) + how.max_tokens - 1) // size) for (prompt, how), _, _ in work) + spare
    engine = engine_of(
        blocks=blocks, block_size=size, slots=slots, budget=slots + more, static=static, ahead=ahead, sharing=sharing
    )
    outputs, clock, leaves, asked = [], 0, {}, {}
    for (prompt, how), wait, stays in work:
        number = engine.add(prompt, how)
        asked[number] = prompt, how
        if stays is not None:
            leaves[number] = clock + stays
        for _ in range(wait):
            outputs += cancelled(engine, leaves, clock) or engine.step()
            clock += 1
    while engine.has_work():
        cancelled(engine, leaves, clock)
        outputs += engine.step()
        clock += 1
        assert clock < 3000
    found, ends = tokens_of(outputs), {output.request: output for output in outputs if output.finished}
    assert ends.keys() == asked.keys() and sum(bool(output.finished) for output in outputs) == len(asked)
    for number, (prompt, how) in asked.items():
        expected, end = alone(prompt, how), ends[number]
        assert end.prompt_tokens == len(prompt) and end.completion_tokens == len(found[number])
        assert 0 <= end.cached_tokens < len(prompt)
        if end.finished is FinishReason.CANCELLED:
            assert found[number] == expected[: len(found[number])] and number in leaves
        else:
            assert found[number] == expected and end.finished is FinishReason.LENGTH
    finished(engine)
    assert engine.statistics().blocks_free == blocks


def cancelled(engine, leaves, clock):
    for number, time in leaves.items():
        if time == clock:
            engine.cancel(number)
            engine.cancel(number)


def test_a_full_cache_preempts_and_generates_the_same():
    engine = engine_of(blocks=10, block_size=4, slots=6, budget=16)
    numbers = {engine.add(ORIGIN[i : i + 9], SamplingParameters(28, temperature=0)): i for i in range(6)}
    found = tokens_of(finished(engine))
    assert engine.statistics().preemptions > 3
    for number, i in numbers.items():
        assert found[number] == alone(tuple(ORIGIN[i : i + 9]), SamplingParameters(28, temperature=0))


def test_a_conversation_finds_its_earlier_tokens_and_a_whole_prompt_is_copied():
    engine = engine_of(blocks=30, block_size=4)
    engine.add(ORIGIN[:8], GREEDY)
    answer = tokens_of(finished(engine))[0]
    longer = [*ORIGIN[:8], *answer]
    for prompt, cached in ((longer, 16), (ORIGIN[:8], 7), (ORIGIN[:7], 4), (longer[:18], 16)):
        number = engine.add(prompt, GREEDY)
        outputs = finished(engine)
        assert tokens_of(outputs)[number] == alone(tuple(prompt), GREEDY)
        assert outputs[-1].cached_tokens == cached


def test_sampled_tokens_depend_on_the_seed_alone():
    how = SamplingParameters(20, temperature=1.3, seed=11)
    engine = engine_of(slots=4, blocks=40, block_size=4, budget=8)
    first = engine.add(ORIGIN[:5], how)
    for seed in (1, None, None):
        engine.add(ORIGIN[:9], dataclasses.replace(how, seed=seed))
    again = engine.add(ORIGIN[:5], how)
    found = tokens_of(finished(engine))
    assert found[first] == found[again] == alone(tuple(ORIGIN[:5]), how)
    assert found[2] != found[3]


@pytest.mark.parametrize(
    "extreme, like",
    [
        ({"top_k": 2**62}, {}),
        ({"temperature": 1e-40}, {"temperature": 0}),
        ({"temperature": 1e-40, "top_k": 5, "top_p": 1e-60}, {"temperature": 0}),
        ({"temperature": 1e300}, {"temperature": 1e30}),
    ],
)
def test_numbers_that_the_device_cannot_hold_choose_like_those_it_can(extreme, like):
    engine = engine_of(model_of(dtype=torch.float32))
    for options in (extreme, like):
        engine.add(ORIGIN[:5], SamplingParameters(9, **{"seed": 2} | options))
    found = tokens_of(finished(engine))
    assert found[0] == found[1]


def test_a_stop_string_that_the_last_token_completes_with_half_a_character():
    engine = engine_of(model_of(BYTES))
    engine.add(b"abc", SamplingParameters(1, temperature=0))
    engine.add(b"abc", SamplingParameters(1, temperature=0, stop=("\ufffd",)))
    whole, stopped = finished(engine)
    assert (whole.text, whole.finished, stopped.text, stopped.finished) == ("\ufffd", "length", "", "stop")


def test_text_stops_and_counts():
    model = model_of(BYTES)
    prompt, how = tuple(b"abc"), SamplingParameters(30, temperature=0)
    tokens = bytes(alone(prompt, how, BYTES))
    whole = tokens.decode(errors="replace")
    for ahead in (False, True):
        engine = engine_of(model, ahead=ahead)
        engine.add(prompt, how)
        assert "".join(output.text for output in finished(engine)) == whole
        stop = whole[5:7]
        number = engine.add(prompt, dataclasses.replace(how, stop=(stop, "never")))
        outputs = finished(engine)
        assert "".join(output.text for output in outputs) == whole[: whole.index(stop)]
        end = outputs[-1]
        assert end.finished is FinishReason.STOP and end.request == number and end.prompt_tokens == 3
        taken = bytes(tokens_of(outputs)[number])
        assert tokens.startswith(taken) and taken.decode(errors="replace").endswith(stop)
        assert end.completion_tokens == len(taken) < 30


def test_what_does_not_fit_is_named():
    engine = engine_of(blocks=3, block_size=8, most_waiting=2)
    for prompt, how, words in (
        ([], GREEDY, "the prompt is empty"),
        ([1, 60], GREEDY, "token 60, and the vocabulary 0 to 59"),
        ([-1], GREEDY, "token -1"),
        ([1] * 29, GREEDY, "29 tokens and max_tokens of 12 are more than the 40 tokens"),
        ([1] * 14, GREEDY, "take 4 blocks of 8 positions, and the cache has 3"),
        ([1], SamplingParameters(stop=("a",)), "this engine has no tokenizer"),
    ):
        with pytest.raises(ValueError, match=words):
            engine.add(prompt, how)
    assert not engine.has_work()
    engine.add([1], GREEDY)
    engine.add([1], GREEDY)
    with pytest.raises(QueueFull, match="2 requests are waiting"):
        engine.add([1], GREEDY)
    finished(engine)


def test_statistics_count_what_happened():
    engine = engine_of(blocks=30, block_size=4, slots=2, ahead=False)
    for _ in range(3):
        engine.add(ORIGIN[:8], GREEDY)
    engine.step()
    now = engine.statistics()
    assert (now.running, now.waiting, now.blocks_used, now.blocks_free) == (2, 1, 4, 26)
    assert now.blocks_filled == 4.0 and now.steps == 1
    finished(engine)
    end = engine.statistics()
    assert end.generated_tokens == 36 and end.prompt_tokens == 24 and end.cached_tokens == 7
    assert end.running == end.waiting == end.blocks_used == 0 and end.blocks_cached > 0


@pytest.mark.parametrize("scheme", ["int8", "int4-32"])
def test_quantized_weights_plug_in(scheme):
    assert scheme in SCHEMES
    config = dataclasses.replace(GROUPED, width=128, heads=8, hidden=128)
    model = quantize(randomised(Transformer(config)).double(), scheme)
    engine = engine_of(model, slots=3, budget=8, blocks=30, block_size=4)
    prompts = [ORIGIN[:5], ORIGIN[:11], ORIGIN[3:6]]
    numbers = [engine.add(prompt, GREEDY) for prompt in prompts]
    found = tokens_of(finished(engine))
    for number, prompt in zip(numbers, prompts, strict=True):
        single = engine_of(model, budget=40)
        single.add(prompt, GREEDY)
        assert tokens_of(finished(single))[0] == found[number]


OPTIONS = {"blocks": 30, "block_size": 4, "slots": 3, "budget": 30}


@pytest.fixture
def kernels(monkeypatch):
    """Take the path of the GPU, in Triton's interpreter: few_rows, the paged attention and the choice of tokens."""
    if not this_machine().interpreted:
        pytest.skip("the models are on the CPU")
    monkeypatch.setattr(paged_attention, "uses_kernels", lambda cache: True)


@pytest.fixture
def graphs(monkeypatch):
    """A stand-in for CUDA graphs that runs the step as often as a capture does, and again at each replay."""

    def captured(step, put_back, pool=None):
        for _ in range(3):
            step()
            put_back()
        return SimpleNamespace(replay=step)

    for module in (passes, layer_graphs):
        monkeypatch.setattr(module, "captured", captured)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)


WORK = [
    (tuple(ORIGIN[:size]), SamplingParameters(count, temperature=seed / 2, top_k=top_k, top_p=0.9, seed=seed))
    for seed, (size, count, top_k) in enumerate([(5, 6, None), (1, 1, 4), (17, 4, None), (8, 5, 9)])
]


def generated(make=Engine, **options):
    engine = engine_of(model_of(dataclasses.replace(GROUPED, width=96), torch.float32), make, **OPTIONS | options)
    for prompt, how in WORK:
        engine.add(prompt, how)
    return tokens_of(finished(engine))


def test_the_kernels_generate_the_same_tokens(request):
    plain = generated(graph=False)
    request.getfixturevalue("kernels")
    assert generated(graph=False) == plain


@pytest.mark.parametrize("ahead", [False, True])
def test_a_capture_in_mid_stream_changes_no_token(ahead, graphs):
    work = [(tuple(ORIGIN[: 3 + i]), SamplingParameters(4 + 3 * i, seed=i)) for i in range(6)]
    engine = engine_of(slots=5, blocks=40, block_size=4, budget=12, graph=True, ahead=ahead)
    for prompt, how in work:
        engine.add(prompt, how)
    found = tokens_of(finished(engine))
    assert [found[number] for number in range(6)] == [alone(*each) for each in work]
    assert set(engine.passes._steps) == {1, 2, 4, 8}
    again = engine_of(slots=5, blocks=40, block_size=4, graph=True)
    again.prepare()
    assert set(again.passes._steps) == {1, 2, 4, 8}


MISTAKES = {
    "one block too early": ("table[sequence, at // size]", "table[sequence, (at - 1).clamp(min=0) // size]"),
    "the wrong offset": ("at % size", "(at + 1) % size"),
    "blocks out of order": ("cache[table]", "cache[table.flip(1)]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_paged_attention_shows(mistake, tmp_path, monkeypatch):
    wrong = planted(paged_attention.attend_paged, tmp_path, MISTAKES[mistake])
    monkeypatch.setattr(paged_attention, "attend_paged", wrong)
    engine = engine_of(block_size=4)
    engine.add(ORIGIN[:6], GREEDY)
    assert tokens_of(finished(engine))[0] != alone(tuple(ORIGIN[:6]), GREEDY)


@pytest.mark.skipif(this_machine().interpreted, reason="needs a GPU")
@pytest.mark.parametrize("sizes", [(1,), (3, 9, 30, 14, 5)])
def test_graphs_generate_the_same_tokens_on_a_gpu(sizes):
    model = randomised(Transformer(dataclasses.replace(GROUPED, width=192))).to(this_machine().device, torch.float16)
    found = []
    for graph in (False, True):
        engine = Engine(model, slots=4, blocks=40, block_size=4, budget=16, graph=graph)
        engine.passes.layers = LayerGraphs(engine.passes.chunked, engine.cache, kernels=True, graph=graph)
        for seed, size in enumerate(sizes):
            engine.add(ORIGIN[:size], SamplingParameters(10, temperature=seed % 2, top_k=5, top_p=0.9, seed=seed))
        found.append(tokens_of(finished(engine)))
    assert found[0] == found[1]
