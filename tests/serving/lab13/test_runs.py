"""What lab 13 shows: counted runs, a client that leaves, and drafts that are cut out of the byte model."""

import pytest
import torch

from labs_helpers.serving.lab13 import client, exercises, measured, stepwise
from labs_helpers.serving.load_study import IN_FLIGHT, STATIC
from tests.serving.served import served


@pytest.mark.parametrize("static", [False, True])
def test_the_exercise_counts_the_engines_steps(static):
    spans = stepwise.run_engine(static)
    assert [stop - start for _, (start, stop) in sorted(spans.items())] == list(stepwise.OUTPUTS)
    assert max(stop for _, stop in spans.values()) == stepwise.count_steps(exercises.next_step, static)


def test_blocks_hold_less_than_one_empty_block_per_request():
    uses = stepwise.compare_caches(exercises.block_tables, slots=32)
    reserved, paged = uses.values()
    assert all(filled <= held <= 8192 for filled, held in (*reserved, *paged))
    assert all(held - filled < 16 * 32 for filled, held in paged)


def test_counted_latencies_follow_the_clock(monkeypatch, tmp_path):
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))  # without records
    slow, fast = (measured.load_rows(pass_ms, 0.1 * pass_ms, rates=(1.0,)) for pass_ms in (20.0, 2.0))
    assert list(slow["policy"]) == [IN_FLIGHT, STATIC] and not slow["errors"].any()
    for name in ("first_p50_ms", "gap_p50_ms", "seconds"):
        assert (slow[name] / fast[name]).tolist() == pytest.approx([10, 10], rel=1e-3), name


def test_a_client_that_leaves_frees_its_blocks():
    with served() as made:
        events = client.stream(made.url, "x", 1000)
        next(events)
        events.close()
        client.until(made.url, "open_requests", 0)
        with pytest.raises(RuntimeError, match=r"400: .*max_tokens"):
            next(client.stream(made.url, "x", -1))


def test_a_shortened_model_has_the_layers_of_the_whole_one():
    target, draft = measured.shortened((0, 5))
    assert torch.equal(
        draft.blocks[1].state_dict()["mlp_norm.weight"], target.blocks[5].state_dict()["mlp_norm.weight"]
    )
    whole, copy = measured.shortened(range(6))
    assert measured.overlap(whole, copy, windows=1) == pytest.approx(1)
    assert 0.2 < measured.overlap(target, draft, windows=1) < 0.9
