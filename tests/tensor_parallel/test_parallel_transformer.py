"""Compare the sharded transformer's loss, gradients and state with lab 01's, and its traffic with the formula."""

import dataclasses
import functools

import pytest
import torch

from labs_helpers.communication import Communication
from labs_helpers.communication.interface import ring_bytes
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.tensor_parallel import ParallelTransformer, traffic
from labs_helpers.transformer import SIZES
from tests.tensor_parallel import cases

MEGATRON, SEQUENCE, NAIVE = {}, {"sequence_parallel": True}, {"scheme": "naive"}
SCHEMES = {"megatron": MEGATRON, "sequence": SEQUENCE, "naive": NAIVE}
BOUNDS = {"float64": 1e-10, "float32": 1e-5}
MODELS = [
    *[(cases.CONFIG, "float64", "own", tp, name) for tp in (1, 2, 4) for name in SCHEMES],
    *[(cases.CONFIG, "float32", way, tp, "megatron") for way in ("mpi", "torch") for tp in (2, 4)],
    *[(cases.CONFIG, "float64", "torch", 2, name) for name in ("sequence", "naive")],
    *[(cases.UNTIED, "float64", "mpi", 2, name) for name in SCHEMES],
]
IDS = [f"{'tied' if c.tied else 'untied'}-{'-'.join(map(str, rest))}" for c, *rest in MODELS]
CASES = {
    name: functools.partial(cases.against_unsharded, *model[:-1], SCHEMES[model[-1]])
    for name, model in zip(IDS, MODELS, strict=True)
}
CASES |= {"DTensor": cases.against_dtensor, "training": cases.training_on_two_layouts, "bfloat16": cases.bfloat16}
CASES |= {"compiled": cases.compiled_blocks, "freed": cases.freed}


@pytest.mark.parametrize("name, model", list(zip(IDS, MODELS, strict=True)), ids=IDS)
def test_loss_gradients_and_state_are_those_of_the_whole_model(results, name, model):
    bound = BOUNDS[model[1]]
    for of_rank in results:
        found = of_rank[name]
        assert found["loss"] < bound and found["gradients"] < bound and found["clipped"] < bound
        assert found["state"] == 0 and found["parameters"]


@pytest.mark.parametrize("name, model", list(zip(IDS, MODELS, strict=True)), ids=IDS)
def test_what_was_sent_is_what_the_formula_says(results, name, model):
    """With the course's own collectives bytes and messages are counted, one by one."""
    config, _, _, tp, scheme = model
    for of_rank in results:
        found = of_rank[name]
        assert found["buckets"] > 2

        assert found["sent"] == found["by formula"]
        if scheme == "megatron" and tp > 1:
            # Two per block and pass; the embedding and the loss (two), and the gradient into the output.
            assert found["forward"] == {"all_reduce": 2 * config.layers + 3}
            assert found["backward"] == {"all_reduce": 2 * config.layers + 1}


def test_a_compiled_block_has_its_all_reduces_in_its_graph(results):
    for of_rank in results:
        assert of_rank["compiled"] < 1e-12


def test_a_model_that_is_dropped_is_freed_at_once(results):
    for of_rank in results:
        assert set(of_rank["freed"].values()) == {(0, 0)}, of_rank["freed"]


def test_dtensor_gives_the_same(results):
    for of_rank in results:
        loss, gradients = of_rank["DTensor"]
        assert loss < 1e-10 and gradients < 1e-10


def test_training_goes_on_in_another_layout(results):
    for of_rank in results:
        losses, weights, learned = of_rank["training"]
        assert losses < 1e-10 and weights < 1e-8 and learned > 0.1


def test_bfloat16_over_every_way(results):
    for of_rank in results:
        assert all(loss < 0.02 and gradients < 0.2 for loss, gradients in of_rank["bfloat16"])


def test_refusals_in_words():
    class Four:
        rank, size = 0, 4

    config = dataclasses.replace(cases.CONFIG, kv_heads=2)
    with pytest.raises(ValueError, match="tp 4 does not divide kv_heads 2"):
        ParallelTransformer(config, Four())
    with pytest.raises(ValueError, match="tp 4 does not divide vocabulary 61"):
        ParallelTransformer(dataclasses.replace(cases.CONFIG, vocabulary=61), Four())
    with pytest.raises(ValueError, match="scheme is 'smart'"):
        ParallelTransformer(cases.CONFIG, Four(), scheme="smart")
    with pytest.raises(ValueError, match="naive has no sequence parallelism"):
        ParallelTransformer(cases.CONFIG, Four(), scheme="naive", sequence_parallel=True)
    model = ParallelTransformer(cases.CONFIG, Four(), sequence_parallel=True)
    with pytest.raises(ValueError, match="tp 4 does not divide length 6"):
        model.features(torch.zeros(1, 6, dtype=torch.int64))


def test_the_formula_in_round_numbers():
    """LLaMA-like, 1B, 8 ranks as 1 × 8: per block and pass two all-reduces of the residual stream."""
    rows = traffic.step_traffic(SIZES["1b"], batch=1, length=4096, tp=8, itemsize=2)
    A = 4096 * 2048 * 2
    blocks = {row.phase: row.calls * row.payload for row in rows if row.where == "blocks"}
    assert blocks == {"forward": 16 * 2 * A, "backward": 16 * 2 * A}
    sequence = traffic.step_traffic(SIZES["1b"], 1, 4096, 8, itemsize=2, sequence_parallel=True)
    same = [traffic.bytes_sent([r for r in table if r.where == "blocks"], 8) for table in (rows, sequence)]
    assert same[0] == same[1]
    assert traffic.step_traffic(SIZES["1b"], 1, 4096, 1) == []
    loss = traffic.bytes_sent([row for row in rows if row.where == "loss"], 8)
    gathered = ring_bytes("all_gather", 4096 * SIZES["1b"].vocabulary * 2, 8)  # of the logits, in their place
    assert gathered > 1000 * loss * 2


@pytest.mark.filterwarnings("ignore")  # PyTorch's compiler does what PyTorch warns of
def test_a_compiled_step_does_not_compile_anew_because_something_was_counted():
    from torch._dynamo.utils import counters

    class Counting(SilentCommunication):  # as MPI's groups, whose collectives stay outside of the graphs
        hide_from_compiler, _count = Communication.hide_from_compiler, Communication._count

    group = Counting(0, 2)
    model = ParallelTransformer(dataclasses.replace(cases.UNTIED, vocabulary=32), group)
    model.compile(backend="eager", dynamic=False)
    tokens, graphs = torch.zeros(2, 8, dtype=torch.int64), []
    for _ in range(2):
        counters.clear()
        model.loss(tokens, tokens).backward()
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[0] > 0 and graphs[1] == 0 and group.calls["all_reduce"] > 10
