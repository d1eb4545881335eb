"""Test that every setup computes the same step, in the precision that it names."""

import contextlib
import dataclasses
import time

import pytest
import torch

from labs_helpers.transformer import SIZES, training_step
from labs_helpers.transformer.lab01.exercises import benchmark
from labs_helpers.transformer.setups import OPTIMIZERS, ORDERS, PRECISIONS, REMEDIES, Setup, walk
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import adamw, next_token_loss
from labs_helpers.transformer.training_step import BEFORE_CAPTURE, LEARNING_RATE, Training, fixed_batch
from tests.transformer.independent import GROUPED

SMALL = dataclasses.replace(SIZES["tiny"], layers=2, width=32, heads=2, kv_heads=2, hidden=64)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def training(batch=4, length=16, config=SMALL, seed=0, **fields):
    return Training(config, Setup(**fields), batch, length, seed, device="cpu")


def losses(steps=3, **how):
    made = training(**how)
    return [made.step().item() for _ in range(steps)]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"attention": "fash"}, "attention is 'fash'; it may be 'plain', 'sdpa', 'flash'"),
        ({"precision": "fp8"}, "precision is 'fp8'; it may be 'fp32', 'tf32'"),
        ({"precision": None}, "precision is None"),
        ({"optimizer": ["fused"]}, r"optimizer is \['fused'\]; it may be 'for-loop', 'foreach', 'fused'"),
        ({"compiled": "yes"}, "compiled is 'yes', not yes or no"),
        ({"regional": True}, "regional is True without compiled"),
        ({"graph": 1}, "graph is 1, not yes or no"),
        ({"segments": -1}, "segments is -1, not an integer of 0 or more"),
        ({"segments": True}, "segments is True"),
        ({"accumulate": 0}, "accumulate is 0, not an integer of 1 or more"),
        ({"accumulate": 2.0}, "accumulate is 2.0"),
        ({"graph": True, "precision": "fp16"}, "graph is True with precision 'fp16'"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        Setup(**wrong)


def test_a_setup_in_words():
    assert str(Setup()) == "plain fp32 foreach"
    every = Setup("flash", "bf16", True, True, "fused", 4, 2)
    assert str(every) == "flash bf16 compiled fused graph 4 segments 2 micro-batches"


def test_orders_lead_from_one_setup_to_another_one_remedy_at_a_time():
    start = Setup(segments=2)
    ends = set()
    for order, remedies in ORDERS.items():
        assert sorted(remedies) == sorted(REMEDIES)
        path = walk(order, start)
        assert list(path) == ["start", *remedies] and path["start"] == start
        for before, after, remedy in zip(path.values(), list(path.values())[1:], remedies, strict=False):
            changed = {k: v for k, v in vars(after).items() if v != vars(before)[k]}
            assert changed == REMEDIES[remedy]
        ends.add(path[remedies[-1]])
    assert len(ends) == 1 and len(set(ORDERS.values())) == len(ORDERS)
    with pytest.raises(ValueError, match="orders has 'backwards'; there are "):
        walk("backwards")


def test_a_step_is_forward_backward_and_update():
    whole, parts = training(), training()
    for _ in range(2):
        loss = parts.forward()
        parts.backward(loss)
        assert all(p.grad is not None for p in parts.model.parameters())
        parts.update()
        assert all(p.grad is None for p in parts.model.parameters())
        assert torch.equal(whole.step(), loss.detach())
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True))


def test_the_step_is_that_of_the_models_own_parts():
    made, by_hand = training(segments=1), training()
    optimizer = adamw(by_hand.model, LEARNING_RATE)
    x, y = fixed_batch(SMALL, 4, 16, seed=0)
    for _ in range(3):
        loss = next_token_loss(by_hand.model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert made.step().item() == pytest.approx(loss.item(), rel=1e-6)


@pytest.mark.parametrize(
    "other",
    [{"attention": "sdpa"}, {"optimizer": "for-loop"}, {"optimizer": "fused"}, {"segments": 2}, {"accumulate": 2}],
    ids=str,
)
def test_losses_are_the_same_in_float32(other):
    assert losses(**other) == pytest.approx(losses(), rel=1e-5)


def test_losses_with_the_courses_attention_are_the_same():
    tiny = {"batch": 1, "length": 8, "config": dataclasses.replace(SMALL, layers=1)}
    assert losses(2, attention="flash", **tiny) == pytest.approx(losses(2, **tiny), rel=1e-5)


@pytest.mark.parametrize("accumulate", [2, 4])
def test_micro_batches_add_up_to_the_same_gradient(accumulate):
    whole, parts = training(), training(accumulate=accumulate)
    whole.backward(whole.forward())
    for micro_batch in range(accumulate):
        parts.backward(parts.forward(micro_batch))
    for a, b in zip(parts.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)


def test_a_batch_that_micro_batches_do_not_divide_is_refused():
    for batch in (0, 3):
        with pytest.raises(ValueError, match=f"a batch of {batch} cannot be divided into 2 micro-batches"):
            training(batch=batch, accumulate=2)
    with pytest.raises(ValueError, match="segments is 3; 2 layers make 0 to 2"):
        training(segments=3)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions(precision):
    made = training(precision=precision)
    seen = []
    made.model.blocks[0].mlp.gate.register_forward_hook(
        lambda module, given, result: seen.append((result.dtype, torch.get_float32_matmul_precision()))
    )
    torch.set_float32_matmul_precision("medium")
    try:
        found = [made.step().item() for _ in range(3)]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    product = {"fp16": torch.float16, "bf16-autocast": torch.bfloat16, "bf16": torch.bfloat16}
    setting = {"fp32": "highest", "tf32": "high"}
    assert set(seen) == {(product.get(precision, torch.float32), setting.get(precision, "medium"))}
    moments = [state["exp_avg"].dtype for state in made.optimizer.state.values()]
    assert {*moments, *(p.dtype for p in made.model.parameters())} == {PRECISIONS[precision]}
    assert found == pytest.approx(losses(), rel=0.01) and found[2] < found[0]
    assert (made.scaler is not None) == (precision == "fp16")


def test_the_precision_is_put_back_after_an_error_and_holds_in_the_backward_pass():
    made, seen = training(precision="tf32"), []
    made.model.embedding.weight.register_hook(lambda grad: seen.append(torch.get_float32_matmul_precision()))
    made.step()
    assert seen == ["high"]
    made.batches = [(torch.full((4, 16), 256), made.batches[0][1])]
    with pytest.raises(IndexError):
        made.forward()
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_loss_of_float16_is_scaled_and_the_update_is_not():
    made = training(precision="fp16")
    made.backward(made.forward())
    scale = made.scaler.get_scale()
    exact = training()
    exact.backward(exact.forward())
    for a, b in zip(made.model.parameters(), exact.model.parameters(), strict=True):
        assert scale > 1 and a.grad.norm() / b.grad.norm() == pytest.approx(scale, rel=0.05)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizer_is_adamw_with_its_groups_in_this_implementation(name):
    made = training(optimizer=name)
    expected = adamw(made.model, LEARNING_RATE).param_groups
    for group, other in zip(made.optimizer.param_groups, expected, strict=True):
        assert [id(p) for p in group["params"]] == [id(p) for p in other["params"]]
        assert all(group[key] == other[key] for key in ("lr", "betas", "eps", "weight_decay"))
        assert (group["foreach"], group["fused"]) == {
            "for-loop": (False, None),
            "foreach": (True, None),
            "fused": (None, True),
        }[name]


def test_a_seed_decides_weights_and_batch_and_leaves_torchs_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = losses(seed=1)
    assert torch.equal(torch.rand(1), expected)
    assert losses(seed=1) == first and losses(seed=2) != first
    assert not torch.equal(training(seed=1).batches[0][0], training(seed=2).batches[0][0])


def test_batches_are_text_where_the_vocabulary_has_bytes():
    x, y = fixed_batch(SIZES["small"], 3, 20, seed=4)
    expected = next(batches("train", 3, 20, seed=4))
    assert torch.equal(x, expected[0]) and torch.equal(y, expected[1])
    x, y = fixed_batch(GROUPED, 3, 20, seed=4)
    assert x.shape == y.shape == (3, 20) and x.max() < GROUPED.vocabulary and torch.equal(x[:, 1:], y[:, :-1])


def test_model_and_loss_are_compiled_as_one_graph(monkeypatch):
    graphs = []

    def compile_(function, **options):
        def count(graph, inputs):
            graphs.append(graph)
            return graph.forward

        assert options.pop("fullgraph") is True
        return original(function, fullgraph=True, backend=count, **options)

    original = torch.compile
    monkeypatch.setattr(torch, "compile", compile_)
    torch._dynamo.reset()
    found = losses(compiled=True, segments=1, attention="sdpa")
    assert found == pytest.approx(losses(), rel=1e-5)
    assert len(graphs) == 1 and "cross_entropy" in graphs[0].code


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # dynamo looks at it
def test_blocks_are_compiled_one_by_one_with_the_code_of_the_first(monkeypatch):
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    original = torch.compile
    # `Module.compile` reads the private name.
    for owner, name in ((torch, "compile"), (torch.nn.modules.module.torch, "compile")):
        monkeypatch.setattr(owner, name, lambda f, **options: original(f, **(options | {"backend": count})))
    torch._dynamo.reset()
    found = losses(compiled=True, regional=True, attention="sdpa")
    assert found == pytest.approx(losses(), rel=1e-5)
    assert len(graphs) == 2 and [("cross_entropy" in graph.code) for graph in graphs] == [False, True]


def test_a_students_benchmark_takes_it():
    timings = benchmark(training(), lambda: None, time.perf_counter, warmup=1, runs=3)
    assert set(timings) == {"forward", "backward", "step"} and all(median > 0 for median, _ in timings.values())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_graph_needs_a_gpu():
    with pytest.raises(ValueError, match="graph is True, which needs a GPU: there are no CUDA graphs on a CPU"):
        training(graph=True)


def test_a_step_is_captured_once_and_replayed(monkeypatch):
    """The order of things on a GPU, with a graph that repeats the step itself."""
    told = []

    class Graph:
        def replay(self):
            told.append("replay")

    @contextlib.contextmanager
    def capturing(graph, stream):
        told.append("capture begins")
        yield
        told.append("capture ends")

    class Stream:
        wait_stream = staticmethod(lambda other: None)

    fakes = {"Stream": Stream, "current_stream": Stream, "graph": capturing, "CUDAGraph": Graph, "synchronize": int}
    fakes |= {"stream": lambda _: contextlib.nullcontext(), "reset_peak_memory_stats": int}
    fakes["max_memory_allocated"] = lambda: 12345
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    made = training()
    made.setup = Setup(graph=True)
    update = made.update
    made.update = lambda: (told.append("update"), update())
    first = made.step()
    assert told == ["update"] * BEFORE_CAPTURE + ["capture begins", "update", "capture ends", "replay"]
    assert made.step() is first and told[-2:] == ["replay", "replay"] and made.captured_bytes == 12345
    expected = losses(BEFORE_CAPTURE + 1)[-1]
    assert first.item() == pytest.approx(expected, rel=1e-6)


def test_an_optimizer_in_a_graph_keeps_its_counters_on_the_device():
    model = training().model
    for name in OPTIMIZERS:
        made = training_step.make_optimizer(model, Setup(graph=True, optimizer=name))
        assert all(group["capturable"] for group in made.param_groups)
