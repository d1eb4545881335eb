"""Compare the bytes sent with formulas, with the transformer's traffic table, and with the cost model's critical
paths."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.collectives.cost_model import BUS_FACTOR, terms
from labs_helpers.planner.accounting import LAYOUTS
from labs_helpers.planner.cluster import FUNCTIONS
from labs_helpers.planner.levels import hybrid_volume
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.volume import (
    SCHEMES,
    bytes_sent,
    formula,
    messages_sent,
    sends_once,
    step_volume,
    tensors,
)
from labs_helpers.tensor_parallel import traffic
from labs_helpers.transformer import SIZES, Transformer

CALM = settings(derandomize=True, deadline=None, max_examples=60)
MODEL = Model.of(SIZES["1b"])
schemes, layouts = st.sampled_from(SCHEMES), st.sampled_from(list(LAYOUTS))
ranks, steps = st.integers(1, 512), st.integers(1, 8)

# (gradients, parameters): how often each is sent, of (N − 1) / N, over K micro-batches.
TIMES = {
    "naive": lambda K: (2, 0),
    "flat": lambda K: (2, 0),
    "DDP": lambda K: (2, 0),
    "ZeRO-1": lambda K: (1, 1),
    "ZeRO-2": lambda K: (K, 1),
    "SHARD_GRAD_OP": lambda K: (K, K),
    "ZeRO-3": lambda K: (K, 2 * K),
}


@CALM
@given(scheme=schemes, layout=layouts, N=ranks, K=steps)
def test_bytes_are_those_of_the_formula(scheme, layout, N, K):
    G, P = (each * MODEL.parameters for each in LAYOUTS[layout][1::-1])
    gradients, parameters = TIMES[scheme](K)
    rows = step_volume(MODEL, scheme, layout, accumulate=K)
    found = bytes_sent(rows, {"dp": N})
    calls = sum(row.calls for row in rows)
    assert found == pytest.approx((gradients * G + parameters * P) * (N - 1) / N, abs=2 * calls)
    assert bytes_sent(rows, {"dp": N + 1}) > found >= 0
    arithmetic = formula(scheme, accumulate=K).replace("−", "-")
    for old, new in (("2 ", "2 * "), ("K ", "K * "), (") (", ") * ("), ("G (", "G * (")):
        arithmetic = arithmetic.replace(old, new)
    assert eval(arithmetic, {"G": G, "P": P, "N": N, "K": K}) == pytest.approx(found, abs=2 * calls)


@pytest.mark.parametrize("scheme, times", [
    ("naive", 1), ("flat", 1), ("DDP", 1), ("ZeRO-1", 1), ("ZeRO-2", 1), ("SHARD_GRAD_OP", 1), ("ZeRO-3", 1.5),
])  # fmt: skip
def test_in_units_of_ddp(scheme, times):
    ddp = bytes_sent(step_volume(MODEL, "DDP"), {"dp": 8})
    assert bytes_sent(step_volume(MODEL, scheme), {"dp": 8}) == pytest.approx(times * ddp)


def test_with_all_reduce_zero_1_and_2_send_half_as_much_again():
    for stage in ("ZeRO-1", "ZeRO-2"):
        rows = step_volume(MODEL, stage, reduction="all_reduce")
        assert bytes_sent(rows, {"dp": 8}) == pytest.approx(1.5 * bytes_sent(step_volume(MODEL, "DDP"), {"dp": 8}))
        assert formula(stage, "all_reduce") == "(2 G + P) (N − 1) / N"
    assert formula("ZeRO-2", "all_reduce", 4) == "(2 K G + P) (N − 1) / N"


def test_under_autocast_gradients_are_twice_the_bytes():
    half, whole = (bytes_sent(step_volume(MODEL, "DDP", name), {"dp": 4}) for name in ("bf16", "autocast over float32"))
    assert whole == 2 * half


@pytest.mark.parametrize("tp, dp", [(1, 4), (2, 2), (4, 8)])
def test_ddp_s_gradients_are_what_the_traffic_of_tensor_parallelism_counts(tp, dp):
    config = SIZES["1b"]
    theirs = [row for row in traffic.step_traffic(config, 1, 64, tp, dp, itemsize=2) if row.group == "dp"]
    assert bytes_sent(theirs, {"dp": dp}) == traffic.bytes_sent(theirs, tp, dp)
    ours = step_volume(MODEL, "flat", "bf16", tp=tp)
    assert [(row.operation, row.payload) for row in ours] == [(row.operation, row.payload) for row in theirs]
    assert bytes_sent(ours, {"dp": dp}) == traffic.bytes_sent(ours, tp, dp)
    assert messages_sent(ours, {"dp": dp}) == traffic.messages_sent(ours, tp, dp)


@CALM
@given(scheme=schemes, N=st.integers(2, 256), bucket=st.integers(2**20, 2**30))
def test_bytes_and_messages_are_those_of_the_cost_model(scheme, N, bucket):
    rows = step_volume(MODEL, scheme, bucket_bytes=bucket)
    path = [(row, terms(FUNCTIONS[row.operation], "ring", N)) for row in rows]
    assert messages_sent(rows, {"dp": N}) == sum(row.calls * one.messages for row, one in path)
    sent = sum(row.calls * row.payload * one.sent for row, one in path)
    assert bytes_sent(rows, {"dp": N}) == pytest.approx(sent, abs=2 * sum(row.calls for row in rows))
    factors = sum(row.calls * row.payload * BUS_FACTOR[FUNCTIONS[row.operation]](N) for row in rows)
    assert sent == pytest.approx(factors)


def test_naive_calls_once_per_tensor_and_the_tensors_are_the_model_s():
    made = Transformer(SIZES["tiny"])
    rows = tensors(Model.of(SIZES["tiny"]))
    assert sorted(p.numel() for p in made.parameters()) == sorted(
        int(each) for _, number, each in rows for _ in range(number)
    )
    assert sum(row.calls for row in step_volume(Model.of(SIZES["tiny"]), "naive")) == len(list(made.parameters()))


@pytest.mark.parametrize("bucket_mb, calls", [(25, 73), (100, 19), (10_000, 1)])
def test_buckets(bucket_mb, calls):
    rows = step_volume(MODEL, "DDP", bucket_bytes=bucket_mb * 2**20)
    assert sum(row.calls for row in rows) == calls == -(-2 * 953_223_168 // (bucket_mb * 2**20))
    assert sum(row.calls * row.payload for row in rows) == 2 * 953_223_168
    assert {row.phase for row in rows} == {"backward"}


def test_no_sync_waits_where_whole_gradients_are_kept():
    assert [sends_once(scheme) for scheme in SCHEMES] == [True, True, True, True, False, False, False]
    once, each = (
        bytes_sent(step_volume(MODEL, "DDP", accumulate=4, no_sync=sync), {"dp": 8}) for sync in (True, False)
    )
    assert each == 4 * once
    kept = step_volume(MODEL, "SHARD_GRAD_OP", accumulate=4, no_sync=True)
    assert bytes_sent(kept, {"dp": 8}) == bytes_sent(step_volume(MODEL, "SHARD_GRAD_OP"), {"dp": 8})
    gathers = [row for row in step_volume(MODEL, "ZeRO-3", accumulate=4, no_sync=True) if row.operation == "all_gather"]
    assert sum(row.calls for row in gathers) == 2 * 4 * 17
    with pytest.raises(ValueError, match="with no_sync it would be ZeRO-1"):
        step_volume(MODEL, "ZeRO-2", accumulate=4, no_sync=True)


def test_hybrid_sharding_sends_between_nodes_the_gradients_alone():
    sizes = {"node": 8, "nodes": 4}
    rows = hybrid_volume(MODEL, 8, accumulate=2)
    G = 2 * MODEL.parameters
    between = bytes_sent([row for row in rows if row.group == "nodes"], sizes)
    assert between == pytest.approx(2 * 2 * G / 8 * 3 / 4, rel=1e-6)
    inside = bytes_sent([row for row in rows if row.group == "node"], sizes)
    assert inside == bytes_sent(step_volume(MODEL, "ZeRO-3", accumulate=2), {"dp": 8})


@pytest.mark.parametrize("bad, message", [
    ({"scheme": "ring"}, "scheme is 'ring'; it may be 'naive', 'flat', 'DDP'"), ({"layout": "fp8"}, "layout is 'fp8'"),
    ({"reduction": "gather"}, "reduction is 'gather'"), ({"accumulate": 0}, "accumulate is 0"),
    ({"bucket_bytes": 0}, "bucket_bytes is 0"),
])  # fmt: skip
def test_what_there_is_not_is_named(bad, message):
    with pytest.raises(ValueError, match=message):
        step_volume(MODEL, **{"scheme": "DDP", **bad})
