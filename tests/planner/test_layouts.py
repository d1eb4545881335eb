"""Check one layout's memory and time: against the papers' formulas, the table of traffic, and simple invariants."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.planner import Cluster, Layout, Model, Run, evaluate
from labs_helpers.planner.accounting import STAGES, states, total
from labs_helpers.planner.limits import obstacle
from labs_helpers.planner.micro_batch import (
    FUSED_ATTENTION,
    TILE,
    forward_seconds,
    message_seconds,
    micro_batch,
    product_seconds,
)
from labs_helpers.planner.pipeline_rank import block_bytes, memory_parts, pipeline_ranks
from labs_helpers.planner.published import gpt
from labs_helpers.tensor_parallel.traffic import step_traffic
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.counts import parameters

CALM = settings(derandomize=True, deadline=None, max_examples=60)
SHAPE = TransformerConfig(32_000, layers=24, width=6144, heads=48, hidden=16384, tied=False)  # GPT's proportions
RUN = Run(Model.of(SHAPE), batch=256)
NODES = Cluster.of("H100", 64)
GRIDS = [(64, 1, 1), (8, 8, 1), (8, 1, 8), (4, 4, 4), (1, 8, 8), (4, 2, 8), (2, 4, 8)]


def sizes(candidate):
    return {part.name: part.bytes for part in candidate.parts}


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_a_block_keeps_the_bytes_of_korthikanti(tp):
    elements = 2 * 2048 * 6144
    assert block_bytes(RUN, Layout(1, tp, micro_batch=2)) == pytest.approx(elements * (8 + 24 / tp))
    assert block_bytes(RUN, Layout(1, tp, micro_batch=2, sequence_parallel=True)) == pytest.approx(elements * 32 / tp)
    plain = dataclasses.replace(RUN, attention="plain")
    scores = 5 * 48 * 2048**2 * 2 / tp
    assert block_bytes(plain, Layout(1, tp, micro_batch=2)) == pytest.approx(elements * (8 + 24 / tp) + scores)
    assert block_bytes(RUN, Layout(1, tp, cp=2, micro_batch=2)) == pytest.approx(elements / 2 * (8 + 24 / tp))


@pytest.mark.parametrize("tied", [False, True])
def test_pipeline_ranks_hold_the_whole_model(tied):
    shape = dataclasses.replace(SHAPE, tied=tied)
    first, second, last = pipeline_ranks(dataclasses.replace(RUN, model=Model.of(shape)), Layout(8, 1, 8))
    whole = sum(parameters(shape).values()) + tied * 32_000 * 6144  # the last rank has a copy of a tied embedding
    assert first.model.parameters + 6 * second.model.parameters + last.model.parameters == pytest.approx(
        whole, rel=1e-5
    )
    assert (first.in_flight, second.in_flight, last.in_flight) == (8, 7, 1)
    assert (first.head, second.head, last.head) == (False, False, True)


def test_activations_are_those_in_flight():
    first, _, last = pipeline_ranks(RUN, layout := Layout(8, 1, 8))
    block, logits = block_bytes(RUN, layout), 12 * 2048 * 32_000
    assert memory_parts(RUN, layout, first)[-1].bytes == pytest.approx(8 * 3 * block)
    assert memory_parts(RUN, layout, last)[-1].bytes == pytest.approx(3 * block + logits)
    kept = layout._replace(checkpoint=True)
    assert memory_parts(RUN, kept, first)[-1].bytes == pytest.approx(8 * 3 * 2 * 2048 * 6144 + block)
    interleaved = layout._replace(chunks=3)
    first = pipeline_ranks(RUN, interleaved)[0]
    assert memory_parts(RUN, interleaved, first)[-1].bytes == pytest.approx(8 * (1 + 7 / 24) * 3 * block)


def test_without_a_pipeline_states_are_those_of_the_accounting():
    for stage in STAGES:
        found = evaluate(RUN, NODES, Layout(64, stage=stage))
        assert total(found.parts[:3]) == pytest.approx(total(states(RUN.model.parameters, stage, 64)))


def test_a_product_takes_its_flops_and_half_a_wave():
    chip, rate = NODES.chip, RUN.efficiency * NODES.chip.fp16_flops
    elements = 4096 * 8192 + TILE * chip.multiprocessors / 2
    assert product_seconds(RUN, chip, 4096, 8192, 1024) == pytest.approx(2 * 1024 * elements / rate)


def test_a_block_takes_its_products_attention_and_little_more():
    found = forward_seconds(RUN, NODES, Layout(64))
    matrices = (parameters(SHAPE)["attention"] + parameters(SHAPE)["mlp"]) / SHAPE.layers
    products = 2 * 2048 * matrices / (RUN.efficiency * NODES.chip.fp16_flops)
    attention = 2 * 2048**2 * 6144 / (FUSED_ATTENTION * NODES.chip.fp16_flops)
    assert products + attention < found < 1.35 * (products + attention)
    plain = forward_seconds(dataclasses.replace(RUN, attention="plain"), NODES, Layout(64))
    scores = 48 * 2048**2
    memory = 6 * 2 * scores / NODES.chip.bandwidth
    assert plain - found == pytest.approx(
        4 * 2048**2 * 6144 / (RUN.efficiency * NODES.chip.fp16_flops) - attention + memory
    )


def test_tensor_parallelism_communicates_as_the_table_of_traffic_says():
    layout = Layout(8, 8, micro_batch=2)
    (rank,) = pipeline_ranks(RUN, layout)
    found = micro_batch(RUN, NODES, layout, rank)
    rows = step_traffic(SHAPE, 2, 2048, 8, itemsize=2)
    in_blocks = [row for row in rows if row.where == "blocks"]
    expected = sum(row.calls * NODES.seconds(row.operation, row.payload, 8) for row in in_blocks)
    assert found.tp == pytest.approx(expected)
    again = micro_batch(RUN, NODES, layout._replace(checkpoint=True), rank)
    assert again.tp == pytest.approx(1.5 * expected) and again.compute > 1.3 * found.compute


def test_a_message_crosses_the_cable_between_nodes_and_nvlink_inside():
    nbytes = 2 * 2048 * 6144
    layout = Layout(1, 8, 8, sequence_parallel=True)  # each node is a pipeline rank: its 8 GPUs send an eighth each
    between = NODES.between
    assert message_seconds(NODES, layout, nbytes) == pytest.approx(between.alpha + nbytes * between.beta)
    alone = Layout(8, 1, 8)  # each of the 8 GPUs of a node sends a whole message of its own
    assert message_seconds(NODES, alone, nbytes) == pytest.approx(between.alpha + 8 * nbytes * between.beta)
    inside = Cluster.of("H100", 8)
    assert message_seconds(inside, Layout(1, 1, 8), nbytes) == pytest.approx(
        inside.inside.alpha + nbytes * inside.inside.beta
    )
    whole = message_seconds(NODES, layout._replace(sequence_parallel=False), nbytes)
    assert whole == pytest.approx(between.alpha + nbytes * between.beta + NODES.seconds("all_gather", nbytes, 8))
    assert message_seconds(NODES, Layout(64), nbytes) == 0


def test_context_parallelism_gathers_keys_and_values():
    layout = Layout(4, 8, cp=2, sequence_parallel=True)
    (rank,) = pipeline_ranks(RUN, layout)
    kv = 2 * 2 * 2048 * 6144 / 8
    each = NODES.seconds("all_gather", kv, 2, 8)
    assert micro_batch(RUN, NODES, layout, rank).cp == pytest.approx(SHAPE.layers * 3 * each)


@pytest.mark.parametrize("dp, tp, pp", GRIDS)
def test_a_step_is_the_sum_of_its_parts(dp, tp, pp):
    found = evaluate(RUN, NODES, Layout(dp, tp, pp, stage="ZeRO-1")).time
    assert found.step == pytest.approx(sum(found.parts().values()))
    m = 256 // dp
    assert found.bubble == pytest.approx((pp - 1) / m * found.busy.total)
    assert 0 <= found.bubble_share + found.exposed_share < 1


@CALM
@given(
    grid=st.sampled_from(GRIDS), stage=st.sampled_from(["DDP", "ZeRO-1"]), micro=st.sampled_from([1, 2]),
    checkpoint=st.booleans(), sequence_parallel=st.booleans(), times=st.sampled_from([2, 4]),
)  # fmt: skip
def test_invariants(grid, stage, micro, checkpoint, sequence_parallel, times):
    dp, tp, pp = grid
    layout = Layout(dp, tp, pp, 1, 1, micro, stage, sequence_parallel, checkpoint)
    found = evaluate(RUN, NODES, layout)
    if 256 % (dp * times * micro) == 0:  # the same global batch on more replicas
        more = evaluate(RUN, Cluster.of("H100", 64 * times), layout._replace(dp=dp * times))
        assert more.memory <= found.memory and more.time.busy.compute < found.time.busy.compute
    larger = evaluate(dataclasses.replace(RUN, batch=256 * times), NODES, layout)
    assert larger.time.step > found.time.step and larger.time.bubble_share <= found.time.bubble_share
    assert larger.mfu >= found.mfu
    slower = evaluate(dataclasses.replace(RUN, efficiency=0.3), NODES, layout)
    assert slower.time.step > found.time.step and slower.memory == found.memory
    other = evaluate(RUN, NODES, layout._replace(checkpoint=not checkpoint))
    with_one, without = (found, other) if checkpoint else (other, found)
    assert sizes(with_one)["activations"] < sizes(without)["activations"]
    assert with_one.time.step > without.time.step
    if tp > 1:
        split = evaluate(RUN, NODES, layout._replace(sequence_parallel=True))
        whole = evaluate(RUN, NODES, layout._replace(sequence_parallel=False))
        assert split.memory < whole.memory and split.time.step <= whole.time.step


def test_chunks_trade_bubble_for_memory():
    plain, interleaved = (evaluate(RUN, NODES, Layout(8, 1, 8, chunks=v)) for v in (1, 3))
    assert interleaved.time.bubble == pytest.approx(plain.time.bubble / 3, rel=0.1)  # with more messages
    assert interleaved.memory > plain.memory and interleaved.time.busy.pp == pytest.approx(3 * plain.time.busy.pp)


@pytest.mark.parametrize("layout, kind, words", [
    (Layout(32), "GPUs", "has 32 GPUs, but the cluster has 64"),
    (Layout(4, 16), "node", "tp 16 leaves the node of 8 GPUs"),
    (Layout(1, 1, 64), "layers", "pp 64 divides neither 24 layers nor 26"),
    (Layout(8, 1, 8, stage="ZeRO-3"), "stage", "ZeRO-3 beside pp 8"),
    (Layout(64, micro_batch=8), "batch", "dp 64 × micro-batch 8 does not divide the batch of 256"),
    (Layout(16, 1, 4, chunks=3, micro_batch=8), "batch", "pp 4 does not divide 2 micro-batches"),
])  # fmt: skip
def test_impossible_layouts_are_refused_with_one_reason(layout, kind, words):
    found = obstacle(RUN, NODES, layout)
    assert found.kind == kind and words in found.reason
    with pytest.raises(ValueError, match=words.split(",")[0]):
        evaluate(RUN, NODES, layout)


def test_tensors_and_groups_that_cannot_be_split():
    grouped = dataclasses.replace(RUN, model=Model.of(dataclasses.replace(SHAPE, kv_heads=4)))
    assert obstacle(grouped, NODES, Layout(8, 8)).reason == "tp 8 does not divide kv_heads 4"
    odd = dataclasses.replace(RUN, length=2050)
    assert obstacle(odd, NODES, Layout(8, 8)) is None
    assert obstacle(odd, NODES, Layout(8, 8, sequence_parallel=True)).reason == "tp 8 does not divide length 2050"
    assert obstacle(odd, NODES, Layout(16, cp=4)).reason == "cp 4 does not divide length 2050"
    twelve = Cluster.of("H100", 96)
    run = dataclasses.replace(RUN, batch=240)
    assert obstacle(run, twelve, Layout(12, 1, 8)).kind == "node"


@pytest.mark.parametrize("bad, message", [
    ({"batch": 0}, "batch is 0"), ({"length": 0}, "length is 0"), ({"efficiency": 0.0}, "efficiency is 0"),
    ({"states": "int4"}, "states is 'int4'"), ({"attention": "fast"}, "attention is 'fast'"),
    ({"stages": ("ZeRO-9",)}, "stage is 'ZeRO-9'"), ({"stages": ()}, "at least one choice"),
])  # fmt: skip
def test_runs_that_cannot_be(bad, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(RUN, **bad)


def test_gpt_has_the_parameters_that_its_paper_counts():
    for width, heads, layers, billions in ((4096, 32, 36, 7.5), (12288, 96, 80, 145.6), (25600, 160, 128, 1008)):
        assert sum(parameters(gpt(layers, width, heads)).values()) == pytest.approx(1e9 * billions, rel=0.03)
