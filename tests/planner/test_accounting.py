"""Test the states by stage and layout against known tables, and properties that hold for any numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.planner import textbooks
from labs_helpers.planner.accounting import (
    DEFAULT,
    GB,
    LAYOUTS,
    PARTS,
    STAGES,
    Part,
    bytes_per_parameter,
    states,
    total,
)

CALM = settings(derandomize=True, deadline=None, max_examples=60)
counts, ranks = st.floats(1, 1e13), st.integers(1, 4096)
stages, layouts = st.sampled_from(list(STAGES)), st.sampled_from(list(LAYOUTS))


@pytest.mark.parametrize(
    "stage, gigabytes",
    [("DDP", (14, 14, 84)), ("ZeRO-1", (14, 14, 10.5)), ("ZeRO-2", (14, 1.75, 10.5)), ("ZeRO-3", (1.75, 1.75, 10.5))],
)
def test_seven_billion_parameters_on_8_gpus(stage, gigabytes):
    parts = states(7e9, stage, 8)
    assert [part.name for part in parts] == list(PARTS)
    assert tuple(part.bytes / GB for part in parts) == pytest.approx(gigabytes)
    assert total(states(7e9, "DDP", 8)) == 112 * GB


@pytest.mark.parametrize("stage, printed", [("DDP", 120), ("ZeRO-1", 31.4), ("ZeRO-2", 16.6), ("ZeRO-3", 1.9)])
def test_figure_1_of_the_zero_paper(stage, printed):
    """7.5 billion parameters, K = 12, 64 GPUs."""
    assert total(states(7.5e9, stage, 64)) / GB == pytest.approx(printed, abs=0.05)


@pytest.mark.parametrize("layout, each", [
    ("bf16 with float32 master", 16), ("autocast over float32", 16), ("bf16", 8),
    ("bf16 with float32 master and gradients", 18), ("fp16 with float32 copies of both", 20),
])  # fmt: skip
def test_bytes_of_a_layout(layout, each):
    assert LAYOUTS[layout].each == bytes_per_parameter("DDP", 8, layout) == each


@pytest.mark.parametrize("layout, fixed, divided", [
    ("fp16 with float32 copies of both", 4, 16), ("bf16 with float32 master and gradients", 6, 12),
    ("autocast over float32", 8, 8),
])  # fmt: skip
@pytest.mark.parametrize("d", [1, 3, 64])
def test_megatron_s_distributed_optimizer(layout, fixed, divided, d):
    """Its documentation's table: 4 + 16 / d, 6 + 12 / d and 8 + 8 / d bytes per parameter."""
    assert bytes_per_parameter("ZeRO-1", d, layout) == pytest.approx(fixed + divided / d)


@pytest.mark.parametrize("layout, moved", [
    ("bf16", 3 * 2 + 2 * 2 + 2 * 2),  # reads g, p, m, v and writes p, m, v
    ("autocast over float32", 7 * 4), ("bf16 with float32 master", 2 + 3 * 4 + 3 * 4 + 2),
])  # fmt: skip
def test_what_an_update_moves(layout, moved):
    assert LAYOUTS[layout].update_bytes == moved


@CALM
@given(counts, stages, layouts)
def test_one_rank_holds_what_a_single_process_does(count, stage, layout):
    assert total(states(count, stage, 1, layout)) == pytest.approx(LAYOUTS[layout].each * count)


@CALM
@given(counts, stages, ranks, layouts)
def test_each_stage_holds_no_more_than_the_one_before_and_more_ranks_no_more_than_fewer(count, stage, n, layout):
    held = {name: total(states(count, name, n, layout)) for name in STAGES}
    assert held["DDP"] >= held["ZeRO-1"] >= held["ZeRO-2"] >= held["ZeRO-3"] == held["SHARD_GRAD_OP"]
    assert total(states(count, stage, 2 * n, layout)) <= held[stage]


@CALM
@given(counts, stages, ranks, layouts)
def test_all_ranks_together_hold_one_copy_of_what_is_divided_and_n_of_the_rest(count, stage, n, layout):
    for part, each in zip(states(count, stage, n, layout), LAYOUTS[layout], strict=False):
        copies = 1 if part.name in STAGES[stage] else n
        assert n * part.bytes == pytest.approx(copies * each * count)
        assert part.formula == f"{each} Ψ" + (" / N" if part.name in STAGES[stage] else "")


def test_whole_gradients_are_those_of_zero_1():
    assert states(1e9, "ZeRO-2", 8, whole_gradients=True) == states(1e9, "ZeRO-1", 8)
    assert states(1e9, "ZeRO-3", 8, whole_gradients=True)[1] == Part("gradients", 2e9, "2 Ψ")


@pytest.mark.parametrize("arguments, message", [
    (("ZeRO-4", 8), "stage is 'ZeRO-4'; it may be 'DDP', 'ZeRO-1'"), (("DDP", 0), "ranks is 0"),
    (("DDP", 8, "fp8"), "layout is 'fp8'; it may be 'bf16 with float32 master'"),
])  # fmt: skip
def test_what_there_is_not_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        states(1e9, *arguments)


def test_textbooks_figures_are_what_their_formulas_give():
    figures = {figure.said: figure for figure in textbooks.figures()}
    printed = {
        "ZeRO-1 saves 37.5% on 2 GPUs": 0.375,
        "… 25%": 0.25,
        "… about 20%": 0.2,
        "a 7B model needs 112 GB": 112,
        "GPT-3 needs 350 GB in fp32": 350,
        "12 bytes of moments": 8,
        "autocast halves the traffic": 2,
    }
    assert {said: figures[said].value for said in printed} == pytest.approx(printed)
    assert DEFAULT == "bf16 with float32 master" and bytes_per_parameter("ZeRO-1", 2) == 10
    for figure in figures.values():  # a formula is Python, but for its signs
        arithmetic = figure.formula.replace("−", "-").replace("·", "*")
        assert eval(arithmetic) == pytest.approx(figure.value if figure.unit != "GB" else figure.value * GB), figure
    assert list(textbooks.table().columns) == ["said", "value", "unit", "formula", "counts"]
