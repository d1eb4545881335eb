"""Test the ranking of layouts: nothing is left out, every rejection has a reason, and two recipes from textbooks."""

import dataclasses
import itertools

import pytest

from labs_helpers.planner import Cluster, Layout, Model, Run, evaluate, find_layouts, search
from labs_helpers.planner.published import gpt
from labs_helpers.planner.search import MICRO_BATCHES, Rejected
from labs_helpers.transformer import SIZES, TransformerConfig

GPT3 = Model.of(gpt(96, 12288, 96))
LLAMA_70B = Model.of(TransformerConfig(128_256, layers=80, width=8192, heads=64, hidden=28672, kv_heads=8, tied=False))
SMALL = Run(Model.of(SIZES["1b"]), batch=24, length=1024)
TWO_NODES = Cluster.of("A100", 8, 4)


def grid(found):
    return (found.layout if hasattr(found, "layout") else found.grid)[:3]


@pytest.mark.parametrize("cp", [1, 2])
def test_every_grid_is_ranked_or_rejected_once(cp):
    found = find_layouts(SMALL, TWO_NODES, cp)
    grids = [grid(one) for one in (*found.candidates, *found.rejected)]
    ranks = range(1, 9)
    assert sorted(grids) == [
        each for each in itertools.product(ranks, ranks, ranks) if each[0] * each[1] * each[2] * cp == 8
    ]
    steps = [one.time.step for one in found.candidates]
    assert steps == sorted(steps) and all(one.fits for one in found.candidates)
    assert all(one.reason and one.kind for one in found.rejected)
    assert all(found.at(*each) in (*found.candidates, *found.rejected) for each in grids)


def test_no_layout_of_a_grid_that_fits_is_faster():
    found = find_layouts(SMALL, TWO_NODES).at(2, 2, 2)
    for micro, chunks, stage, checkpoint, sequence in itertools.product(
        MICRO_BATCHES, range(1, 10), ("DDP", "ZeRO-1", "ZeRO-2"), (False, True), (False, True)
    ):
        layout = Layout(2, 2, 2, 1, chunks, micro, stage, sequence, checkpoint)
        try:
            other = evaluate(SMALL, TWO_NODES, layout)
        except ValueError:
            continue
        assert not other.fits or other.time.step >= found.time.step * (1 - 1e-12)


def test_rejections_are_summed_up_by_kind_with_one_example():
    found = find_layouts(SMALL, TWO_NODES)
    lines = found.reasons()
    assert sum(int(line.split()[0]) for line in lines) == len(found.rejected)
    assert "1 grid (node), such as dp 1 × tp 8 × pp 1: tp 8 leaves the node of 4 GPUs" in lines
    tiny = find_layouts(dataclasses.replace(SMALL, model=Model.of(70e9)), Cluster.of("T4", 4))
    assert tiny.best is None and tiny.table().empty
    (line,) = (line for line in tiny.reasons() if "(memory)" in line)
    least = min((one for one in tiny.rejected if one.kind == "memory"), key=lambda one: one.memory)
    assert f"{least.grid}: {least.reason}" in line and "but a GPU has 16 GB" in line


def test_a_run_limits_what_layouts_use():
    run = dataclasses.replace(SMALL, stages=("DDP",), checkpoint=(True,), sequence_parallel=False)
    for one in find_layouts(run, TWO_NODES).candidates:
        assert one.layout.stage == "DDP" and one.layout.checkpoint and not one.layout.sequence_parallel
    only = find_layouts(dataclasses.replace(SMALL, stages=("ZeRO-3",)), TWO_NODES)
    assert {one.layout.pp for one in only.candidates} == {1}
    assert "ZeRO-3 beside pp 2" in only.at(4, 1, 2).reason


def test_a_table_has_a_row_per_grid():
    found = find_layouts(SMALL, TWO_NODES)
    table = found.table(3)
    assert list(table.index) == [str(one.layout) for one in found.candidates[:3]]
    assert table["step s"].is_monotonic_increasing and (table["GB"] < 80).all()
    assert table["tokens/s"].iloc[0] == pytest.approx(24 * 1024 / found.best.time.step / 8)
    with pytest.raises(ValueError, match="dp 3 × tp 1 × pp 1 is no grid"):
        found.at(3, 1, 1)
    with pytest.raises(ValueError, match="cp 3 does not divide 8 GPUs"):
        find_layouts(SMALL, TWO_NODES, cp=3)


def test_16_384_gpus_need_few_evaluations(monkeypatch):
    calls = []
    monkeypatch.setattr(search, "evaluate", lambda *given: calls.append(given) or evaluate(*given))
    found = find_layouts(Run(GPT3, 2048), Cluster.of("H100", 16_384))
    assert len(found.candidates) + len(found.rejected) == 120  # dp × tp × pp of 2^14
    assert found.candidates and len(calls) < 3000  # at about 0.2 ms each


def test_gpt_3_fits_as_16_by_8_by_8_on_1024_gpus_but_smaller_tensor_groups_are_faster():
    found = find_layouts(Run(GPT3, 1536), Cluster.of("H100", 1024))
    recipe = found.at(16, 8, 8)
    assert recipe.layout.stage == "ZeRO-1" and not recipe.layout.checkpoint
    assert recipe.memory == pytest.approx(54.8e9, rel=0.01) and recipe.time.step == pytest.approx(7.31, rel=0.02)
    assert grid(found.best) == (32, 4, 8)
    assert 1.05 < recipe.time.step / found.best.time.step < 1.15
    plain = evaluate(found.run, found.cluster, Layout(16, 8, 8))  # DDP, 1F1B, no sequence parallelism: it fits, too
    assert plain.fits and plain.time.bubble_share == pytest.approx(7 / (96 + 7), abs=0.003)


def test_70b_on_64_gpus_needs_its_optimizer_sharded_and_makes_a_thousand_tokens_per_second():
    """8 × 8 leaves no GPU for shards inside a replica; sharding is along dp."""
    found = find_layouts(Run(LLAMA_70B, 512, 4096), Cluster.of("H100", 64))
    layout = Layout(8, 8, sequence_parallel=True)
    ddp = evaluate(found.run, found.cluster, layout)
    assert not ddp.fits and ddp.memory == pytest.approx(153e9, rel=0.01)
    assert {part.name: part.bytes for part in ddp.parts}["optimizer"] == pytest.approx(12 * 70.55e9 / 8, rel=0.01)
    assert evaluate(found.run, found.cluster, layout._replace(stage="ZeRO-1")).fits
    recipe = found.at(8, 8, 1)
    assert recipe.layout.stage == "ZeRO-1"
    tokens = found.table()["tokens/s"]
    assert 900 < tokens["dp 8 × tp 8 × pp 1"] < 1050 and 1050 < tokens.iloc[0] < 1200
    assert grid(found.best) == (8, 4, 2) and isinstance(found.at(64, 1, 1), type(recipe))
    assert isinstance(found.at(32, 1, 2), Rejected)
