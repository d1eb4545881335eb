"""Compare the pipeline's formulas with simulated schedules, and check how layers are cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.planner.pipeline import cut, in_flight, schedule_length

CALM = settings(derandomize=True, deadline=None, max_examples=80)


def order(m, p, v, rank):
    """Return Megatron's operations of one rank, each ("F" or "B", chunk, micro-batch)."""
    if v == 1:
        forward = [("F", 0, i) for i in range(m)]
        backward = [("B", 0, i) for i in range(m)]
        warm_up = min(m, p - rank - 1)
    else:  # groups of p micro-batches pass through chunk after chunk
        groups = [range(first, first + p) for first in range(0, m, p)]
        forward = [("F", chunk, i) for group in groups for chunk in range(v) for i in group]
        backward = [("B", chunk, i) for group in groups for chunk in reversed(range(v)) for i in group]
        warm_up = min(m * v, 2 * (p - rank - 1) + (v - 1) * p)
    operations = forward[:warm_up]
    for one, other in zip(forward[warm_up:], backward, strict=False):
        operations += [one, other]
    return operations + backward[len(forward) - warm_up :]


def simulate(m, p, v):
    """Return when the last operation ends, if F takes 1 / v and B 2 / v, and the most chunks that each rank keeps."""
    queues = [order(m, p, v, rank) for rank in range(p)]
    done, free, most, kept = {}, [0.0] * p, [0] * p, [0] * p
    while any(queues):
        moved = False
        for rank, queue in enumerate(queues):
            while queue:
                kind, chunk, i = queue[0]
                place = chunk * p + rank
                if kind == "F":
                    needs = None if place == 0 else ("F", place - 1, i)
                else:
                    needs = ("F", place, i) if place == p * v - 1 else ("B", place + 1, i)
                if needs and needs not in done:
                    break
                end = max(free[rank], done.get(needs, 0.0)) + {"F": 1, "B": 2}[kind] / v
                done[kind, place, i] = free[rank] = end
                kept[rank] += 1 if kind == "F" else -1
                most[rank] = max(most[rank], kept[rank])
                queue.pop(0)
                moved = True
        assert moved, "deadlock"
    return max(free), most


@CALM
@given(p=st.integers(1, 6), m=st.integers(1, 14))
def test_1f1b_takes_and_keeps_what_a_simulation_does(p, m):
    end, most = simulate(m, p, 1)
    assert end == pytest.approx(3 * schedule_length(m, p))
    assert most == [in_flight(m, p, 1, rank) for rank in range(p)]


@CALM
@given(p=st.integers(2, 5), groups=st.integers(1, 4), v=st.integers(2, 4))
def test_interleaved_chunks_take_and_keep_what_a_simulation_does(p, groups, v):
    m = groups * p
    end, most = simulate(m, p, v)
    assert end == pytest.approx(3 * schedule_length(m, p, v))
    assert [chunks / v for chunks in most] == pytest.approx([in_flight(m, p, v, rank) for rank in range(p)])


def test_the_first_rank_keeps_what_the_paper_says():
    assert in_flight(64, 8) == 8 and in_flight(4, 8) == 4 and in_flight(64, 8, rank=7) == 1
    assert in_flight(64, 8, 4) == pytest.approx(8 * (1 + 7 / (8 * 4)))
    assert schedule_length(64, 8, 4) == 64 + 7 / 4


@CALM
@given(layers=st.integers(1, 130), p=st.integers(1, 40), v=st.integers(1, 6))
def test_layers_are_all_there_and_chunks_cost_the_same(layers, p, v):
    try:
        found = cut(layers, p, v)
    except ValueError as error:
        assert layers % (p * v) and (p == 1 or (layers + 2) % (p * v))
        assert str(layers) in str(error)
        return
    assert len(found) == p and sum(found) == layers and min(found) >= 0
    whole = found if layers % (p * v) == 0 else [found[0] + 1, *found[1:-1], found[-1] + 1]
    assert len(set(whole)) == 1 and whole[0] % v == 0


def test_llama_3_has_a_layer_less_at_both_ends():
    assert cut(126, 16, 8) == [7, *[8] * 14, 7]
    assert cut(80, 8, 2) == [10] * 8


@pytest.mark.parametrize("call, message", [
    (lambda: schedule_length(0, 2), "micro_batches 0"), (lambda: schedule_length(6, 4, 2), "pp 4 does not divide 6"),
    (lambda: cut(80, 7), "pp 7 divides neither 80 layers nor 82"), (lambda: cut(8, 4, 3), "pp 4 × 3 chunks"),
])  # fmt: skip
def test_impossible_pipelines_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
