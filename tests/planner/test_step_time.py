"""Test predicted times: collectives by the cost model, overlap by simulating a queue, and bounds."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.collectives.cost_model import Costs, cost
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.planner.cluster import FUNCTIONS, LINK_SHARE, PORT, Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.step_time import StepTime, amdahl, exposed, overlap_bound, step_time
from labs_helpers.planner.volume import SCHEMES, sends_once, step_volume
from labs_helpers.tensor_parallel.traffic import step_traffic
from labs_helpers.transformer import SIZES

CALM = settings(derandomize=True, deadline=None, max_examples=60)
MODEL = Model.of(SIZES["1b"])
ONE_NODE = Cluster.of("H200", 4)
NODES = Cluster.of("H100", 16)
times = st.floats(1e-4, 10)


@CALM
@given(operation=st.sampled_from(list(FUNCTIONS)), gpus=st.integers(1, 8), nbytes=st.floats(1, 1e11))
def test_on_one_node_a_collective_takes_what_the_cost_model_s_ring_does(operation, gpus, nbytes):
    cluster = Cluster.of("H200", gpus)
    expected = cost(FUNCTIONS[operation], "ring", gpus, nbytes, cluster.inside)
    assert cluster.seconds(operation, nbytes, gpus) == pytest.approx(expected)


@CALM
@given(operation=st.sampled_from(list(FUNCTIONS)), nbytes=st.floats(1, 1e12))
def test_over_nodes_it_is_the_quicker_of_one_ring_and_two_levels(operation, nbytes):
    function, found = FUNCTIONS[operation], NODES.seconds(operation, nbytes, 16)
    slower = Costs(NODES.between.alpha, max(NODES.inside.beta, NODES.between.beta))  # a ring passes through both
    ring = cost(function, "ring", 16, nbytes, slower)
    inside = cost(function, "ring", 8, nbytes, NODES.inside)
    between = cost(function, "ring", 2, nbytes / 8, Costs(NODES.between.alpha, 8 * NODES.between.beta))  # 8 share it
    assert found == pytest.approx(min(ring, inside + between))
    assert NODES.seconds(operation, 2 * nbytes, 16) >= found


def test_groups_share_a_node_s_cable():
    """Of 16 GPUs on two nodes, 8 pairs between the nodes: each has an eighth of the cable."""
    pairs = NODES.seconds("all_reduce", 1e9, 2, stride=8)
    assert pairs == pytest.approx(2 * NODES.between.alpha + 8 * 1e9 * NODES.between.beta)
    assert NODES.seconds("all_reduce", 1e9, 8) == cost("allreduce", "ring", 8, 1e9, NODES.inside)
    fours = NODES.seconds("all_reduce", 1e9, 8, stride=2)  # 2 groups of 4 + 4
    levels = cost("allreduce", "ring", 4, 1e9, NODES.inside) + 2 * NODES.between.alpha + 2e9 * NODES.between.beta
    ring = cost("allreduce", "ring", 8, 1e9, Costs(NODES.between.alpha, 2 * NODES.between.beta))
    assert fours == pytest.approx(min(levels, ring))


@pytest.mark.parametrize("ranks, stride", [(3, 1), (12, 1), (2, 3), (6, 1)])
def test_groups_that_are_not_equally_on_the_nodes_are_refused(ranks, stride):
    with pytest.raises(
        ValueError, match=f"groups of {ranks}, every {stride}th GPU, are not spread equally over nodes of 8"
    ):
        NODES.seconds("all_reduce", 1e9, ranks, stride)


def test_a_cluster_has_the_datasheet_s_rates_unless_they_are_given():
    assert 1 / ONE_NODE.inside.beta == pytest.approx(LINK_SHARE * DATASHEET["H200"].link_bandwidth)
    assert 1 / NODES.between.beta == pytest.approx(8 * PORT) and NODES.nodes == 2
    slow = Cluster.of("NVIDIA H100 80GB HBM3", 16, 8, inside=1e9, between=2e9, alpha_inside=0, alpha_between=1e-3)
    assert (slow.inside, slow.between) == (Costs(0, 1e-9), Costs(1e-3, 0.5e-9))
    assert "2 nodes, each with 2 GB/s and 1e+03 µs" in str(slow) and "nodes" not in str(ONE_NODE)


@pytest.mark.parametrize("arguments, message", [
    (("RTX 3090", 8), "no datasheet for 'RTX 3090'; choose from T4, A100"), (("H100", 0), "gpus is 0"),
    (("H100", 12, 8), "nodes must be full"), (("H100", 8, 8, 0.0), "inside is 0 bytes/s"),
    (("H100", 8, 8, None, math.inf), "between is inf"), (("H100", 8, 8, None, None, -1e-6), "a message takes -1e-06 s"),
])  # fmt: skip
def test_a_cluster_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        Cluster.of(*arguments)


def played(communication, pieces, window, passes):
    """The queue itself: piece i is sent when it is computed and the link is free."""
    alone = 0.0
    for _ in range(passes):
        free = 0.0
        for i in range(1, pieces + 1):
            free = max(free, i * window / passes / pieces) + communication / passes / pieces
        alone += free - window / passes
    return alone


@CALM
@given(communication=times, pieces=st.integers(1, 60), window=times, passes=st.integers(1, 4))
def test_what_is_exposed_is_what_a_queue_leaves_behind(communication, pieces, window, passes):
    found = exposed(communication, pieces, window, passes)
    assert found == pytest.approx(played(communication, pieces, window, passes), rel=1e-6)
    assert max(communication / pieces, communication - window) * (1 - 1e-9) <= found <= communication * (1 + 1e-9)


def test_nothing_to_send_exposes_nothing():
    assert exposed(0, 5, 1) == 0 and exposed(3, 0, 1) == 3


@CALM
@given(scheme=st.sampled_from(SCHEMES), compute=times, update=st.floats(0, 1), K=st.integers(1, 4), c=st.floats(0, 1))
def test_a_step_is_the_sum_of_its_parts_and_overlap_never_costs(scheme, compute, update, K, c):
    rows = step_volume(MODEL, scheme, accumulate=K)
    how = {"dp": 4, "accumulate": K, "reducing": 1 if sends_once(scheme) else None, "contention": c}
    found, plain = (step_time(rows, ONE_NODE, compute, update, overlap=overlap, **how) for overlap in (True, False))
    assert found.communication == plain.communication == plain.exposed
    assert 0 <= found.exposed <= found.communication * (1 + 1e-9)
    assert found.step == pytest.approx(compute + update + found.exposed + c * found.hidden)
    assert compute + update <= found.step <= plain.step * (1 + 1e-9)
    assert plain.step == pytest.approx(amdahl(plain.share) * (compute + update))
    names = [name for name, _, _ in found.parts()]
    assert names == ["compute", "update", "exposed", "hidden", "step"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_alone_a_rank_computes(scheme):
    assert step_time(step_volume(MODEL, scheme), Cluster.of("H200", 1), 1.0, 0.1, dp=1).step == 1.1


def test_naive_and_flat_hide_nothing_and_naive_waits_for_more_messages():
    naive, flat, ddp = (
        step_time(step_volume(MODEL, s, "bf16"), ONE_NODE, 0.045, dp=4) for s in ("naive", "flat", "DDP")
    )
    assert naive.hidden == flat.hidden == 0 and naive.exposed > flat.exposed > ddp.exposed
    assert ddp.exposed == pytest.approx(ddp.communication / 73, rel=0.3)


def test_tensor_parallelism_s_collectives_are_exposed():
    rows = step_traffic(SIZES["1b"], 4, 1024, 4, itemsize=2)
    found = step_time(rows, ONE_NODE, 10.0, dp=1, tp=4)
    assert found.exposed == found.communication > 0


def test_with_accumulation_ddp_has_the_last_backward_pass_to_hide_behind():
    rows = step_volume(MODEL, "DDP", accumulate=8)
    once = step_time(rows, ONE_NODE, 0.016, dp=4, accumulate=8, reducing=1)
    assert once.exposed > step_time(rows, ONE_NODE, 0.016, dp=4).exposed


def test_a_gather_hides_in_each_pass_and_a_reduction_in_those_that_reduce():
    rows = step_volume(MODEL, "SHARD_GRAD_OP", accumulate=4, no_sync=True)
    once = step_time(rows, ONE_NODE, 0.1, dp=4, accumulate=4, reducing=1, gathering=1)
    assert once.communication == step_time(step_volume(MODEL, "SHARD_GRAD_OP"), ONE_NODE, 0.1, dp=4).communication
    assert 0 < once.exposed < once.communication


@CALM
@given(compute=times, communication=times)
def test_bounds(compute, communication):
    share = communication / (compute + communication)
    bound = overlap_bound(compute, communication)
    assert 1 <= bound <= min(2, amdahl(share)) * (1 + 1e-9)
    assert overlap_bound(compute, communication, 2 / 3 * compute) <= bound * (1 + 1e-9)
    assert amdahl(share, 1) == pytest.approx(1) and amdahl(share, 2) < amdahl(share)


def test_amdahl_and_the_usual_headline():
    """Communication a third of the step, and overlapping makes it 1.3 times as fast: 1.5 is the bound."""
    assert amdahl(1 / 3) == pytest.approx(1.5) and overlap_bound(2, 1) == pytest.approx(1.5)
    assert overlap_bound(2, 1, window=4 / 3) == pytest.approx(1.5)
    overlapped, plain = StepTime(2, 0, 1, 0.05), StepTime(2, 0, 1, 1)
    assert plain.share == pytest.approx(1 / 3) and 1.15 < plain.step / overlapped.step < 1.5
    assert amdahl(1) == math.inf and amdahl(0.5, 2) == pytest.approx(4 / 3)


@pytest.mark.parametrize("call, message", [
    (lambda: amdahl(1.2), "share is 1.2"), (lambda: amdahl(0.5, 0), "factor is 0"),
    (lambda: step_time([], ONE_NODE, -1.0, dp=4), "compute is -1"),
    (lambda: step_time([], ONE_NODE, 1.0, dp=4, contention=2), "contention 2"),
])  # fmt: skip
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
