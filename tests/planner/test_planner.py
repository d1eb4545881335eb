"""Test the planner: it considers every strategy, chooses the right one, and its command names invalid input."""

import dataclasses
import re

import pytest

from labs_helpers.planner.__main__ import main
from labs_helpers.planner.accounting import GB, STAGES, states, total
from labs_helpers.planner.choice import AS_FAST, gpus_needed
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import COLUMNS, PARTS, plan
from labs_helpers.planner.strategies import Training, evaluate, strategies
from labs_helpers.planner.volume import bytes_sent, step_volume
from labs_helpers.tensor_parallel import traffic
from labs_helpers.transformer import SIZES

SEVEN = Training(Model.of(7e9))
EIGHT = Cluster.of("H100", 8)


def by_name(found):
    return {row.strategy.name: row for row in found.rows}


def test_every_strategy_is_there_the_simplest_first():
    assert [one.name for one in strategies(EIGHT, SEVEN.model)] == [
        *STAGES, "dp 4 × tp 2", "dp 4 × tp 2, ZeRO-1", "dp 2 × tp 4", "dp 2 × tp 4, ZeRO-1", "tp 8",
    ]  # fmt: skip
    two_nodes = [one.name for one in strategies(Cluster.of("H100", 16), SEVEN.model)]
    assert "HYBRID_SHARD" in two_nodes and "dp 2 × tp 8" in two_nodes and "tp 16" not in two_nodes


def test_rows_are_what_the_accounting_counts():
    for name, row in by_name(plan(SEVEN, EIGHT)).items():
        assert row.memory == pytest.approx(sum(part.bytes for part in row.parts)) and row.time is not None
        assert row.time.step >= SEVEN.compute_seconds(EIGHT)
        if name in STAGES:
            assert total(row.parts[:3]) == pytest.approx(total(states(7e9, name, 8)))
            assert row.sent == bytes_sent(step_volume(SEVEN.model, name), {"dp": 8})
    tp = by_name(plan(SEVEN, EIGHT))["tp 8"]
    whole = traffic.step_traffic(SEVEN.model.shape, 8, 2048, 8, itemsize=2)  # the batches of 8 GPUs
    assert tp.sent == pytest.approx(traffic.bytes_sent(whole, 8), rel=1e-6)


@pytest.mark.parametrize("training, cluster, choice, words", [
    # Whole states do not fit, and no other strategy is so much faster that it would be worth more than ZeRO-1.
    (SEVEN, EIGHT, "ZeRO-1", r"DDP \(126 GB\) does not fit"),
    (Training(Model.of(SIZES["1b"]), 4, 1024, layout="bf16"), Cluster.of("H200", 4), "DDP", "is less simple"),
    # 140 GB of parameters: ZeRO-3 and 8-fold tensor parallelism alone divide them enough, and that exposes more.
    (Training(Model.of(70e9), checkpoint=True), Cluster.of("H100", 64), "ZeRO-3", "exposes"),
    (Training(Model.of(70e9), checkpoint=True), EIGHT, None, "fits on 24 or more GPUs"),
    # With many micro-batches ZeRO-1 sends once, and ZeRO-2 and 3 each time.
    (Training(Model.of(7e9), batch=16, accumulate=16), EIGHT, "ZeRO-1", "longer"),
])  # fmt: skip
def test_choices(training, cluster, choice, words):
    found = plan(training, cluster)
    assert (found.choice and found.choice.strategy.name) == choice, found.reason
    assert re.search(words, found.reason), found.reason


def test_the_choice_fits_and_nothing_that_fits_is_much_faster():
    for gpus in (2, 4, 8, 16, 32):
        for size in (1e9, 7e9, 13e9):
            found = plan(Training(Model.of(size)), Cluster.of("A100", gpus))
            steps = [row.time.step for row in found.rows if row.fits]
            assert (found.choice is None) == (not steps)
            if found.choice:
                assert found.choice.fits and found.choice.time.step <= (1 + AS_FAST) * min(steps)
                assert f"{found.choice.strategy.name}: " in found.reason


def test_what_does_not_fit_says_how_many_gpus_would():
    training = Training(Model.of(70e9), checkpoint=True)
    needed = gpus_needed(training, EIGHT)
    (zero3,) = (row for row in plan(training, Cluster.of("H100", needed)).rows if row.strategy.name == "ZeRO-3")
    (fewer,) = (row for row in plan(training, Cluster.of("H100", needed - 8)).rows if row.strategy.name == "ZeRO-3")
    assert zero3.fits and not fewer.fits
    assert gpus_needed(Training(Model.of(70e9), batch=64), EIGHT) is None
    told = plan(Training(Model.of(70e9), batch=64), EIGHT).reason
    assert "Nothing fits" in told and "--accumulate" in told and "it may with --checkpoint" in told
    assert "either. Offload" in plan(Training(Model.of(70e9), batch=2048, checkpoint=True), EIGHT).reason


def test_a_shape_that_cannot_be_split_says_why():
    grouped = dataclasses.replace(SIZES["1b"], kv_heads=2)
    found = by_name(plan(Training(Model.of(grouped)), EIGHT))
    assert found["dp 2 × tp 4"].why_not == "tp 4 does not divide kv_heads 2" and not found["dp 2 × tp 4"].fits
    assert "dp 2 × tp 4, ZeRO-1" not in found and found["dp 4 × tp 2, ZeRO-1"].fits


def test_more_micro_batches_are_less_memory_and_the_same_compute():
    at_once, bits = Training(Model.of(7e9), batch=8), Training(Model.of(7e9), batch=8, accumulate=8)
    for strategy in strategies(EIGHT, at_once.model):
        one, many = (evaluate(training, EIGHT, strategy) for training in (at_once, bits))
        assert many.memory < one.memory and many.time.compute == one.time.compute


def test_what_is_sent_once_has_the_last_backward_pass_to_hide_behind():
    """DDP of 16 micro-batches on links so slow that one backward pass is shorter than its all-reduces."""
    cluster = Cluster.of("H100", 8, inside=20e9)
    many = by_name(plan(Training(Model.of(1e9), batch=16, length=512, accumulate=16), cluster))["DDP"].time
    whole = by_name(plan(Training(Model.of(1e9), batch=16, length=512), cluster))["DDP"].time
    assert many.communication == whole.communication and many.compute == whole.compute
    assert many.exposed > 0.95 * many.communication > 1.5 * whole.exposed


def test_hybrid_sharding_counts_shards_of_a_node():
    row = by_name(plan(SEVEN, Cluster.of("H100", 32)))["HYBRID_SHARD"]
    assert total(row.parts[:3]) == pytest.approx(16 * 7e9 / 8)
    assert row.sent_formula.startswith("(2 P + G) (g − 1) / g")


def test_on_one_gpu_every_stage_is_the_same():
    rows = by_name(plan(Training(Model.of(SIZES["small"])), Cluster.of("A100", 1)))
    assert list(rows) == list(STAGES)
    assert len({(row.memory, row.sent, row.time.step) for row in rows.values()}) == 1


@pytest.mark.parametrize("bad, message", [
    ({"batch": 0}, "batch is 0"), ({"length": -1}, "length is -1"), ({"batch": 4, "accumulate": 3}, "must divide"),
    ({"efficiency": 40}, "efficiency is 40"), ({"efficiency": 0}, "a fraction of the peak"),
])  # fmt: skip
def test_training_that_cannot_be(bad, message):
    with pytest.raises(ValueError, match=message):
        Training(Model.of(7e9), **bad)


def test_tables():
    found = plan(SEVEN, EIGHT)
    table, formulas = found.table(), found.formulas()
    assert list(table.columns) == list(COLUMNS) and list(table.index) == [row.strategy.name for row in found.rows]
    assert (table["memory"] - table[list(PARTS)].sum(axis=1)).abs().max() < 1e-9
    assert table.loc["DDP", "memory"] > 112 and table.loc["DDP", "fits"] == "no"
    assert formulas.loc[("ZeRO-2", "optimizer"), ["value", "unit", "formula"]].tolist() == [10.5, "GB", "12 Ψ / N"]
    assert formulas.loc[("ZeRO-3", "sent"), "formula"] == "(2 P + G) (N − 1) / N"
    assert (formulas["formula"].str.len() > 0).all() and set(formulas["unit"]) == {"GB", "ms"}


def test_the_command_prints_a_table_and_a_reason(capsys):
    main(["--parameters", "7e9", "--gpus", "8", "--formulas"])
    out = capsys.readouterr().out
    assert "7 billion parameters (assumed shape: 33 layers" in out and "= 16 bytes per parameter" in out
    assert "8 H100 with 80 GB" in out and "ZeRO-1: 52.5 GB of 80 GB" in out
    assert "12 Ψ / N" in out and "G: bytes of all gradients" in out
    main(["--size", "1b", "--gpus", "12", "--gpus-per-node", "12", "--gpu", "H200", "--inside", "300", "--checkpoint"])
    out = capsys.readouterr().out
    assert "each with 300 GB/s" in out and "blocks checkpointed" in out
    assert "dp 4 × tp 3 is not possible: tp 3 does not divide heads 16" in out


def test_the_command_ranks_layouts_of_a_global_batch(capsys):
    main(["--parameters", "175e9", "--gpus", "1024", "--global-batch", "1536", "--top", "2", "--formulas"])
    out = capsys.readouterr().out
    assert "96 layers" in out and "1,536 × 2,048 tokens per step" in out
    assert len(re.findall(r"^dp .*ZeRO-1", out, re.MULTILINE)) == 2
    assert "Memory of one GPU with dp" in out and "GB  optimizer: 12 Ψ / N" in out
    assert re.search(r"Rejected: \d+ of 66 grids", out) and "tp 16 leaves the node of 8 GPUs" in out
    main(["--parameters", "70e9", "--gpus", "2", "--gpu", "T4", "--global-batch", "2", "--checkpoint"])
    assert "No layout fits." in capsys.readouterr().out


def test_the_command_compares_predictions_with_published_runs(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--published"])
    assert not ended.value.code
    out = capsys.readouterr().out
    assert len(re.findall("^(GPT|Llama)", out, re.MULTILINE)) == 13 and "fitted to GPT 145.6B" in out


@pytest.mark.parametrize("arguments, message", [
    (["--gpus", "8"], "one of the arguments --parameters --size is required"),
    (["--parameters", "7e9"], "--gpus"),
    (["--parameters", "7e9", "--gpus", "0"], "0 is not an integer of at least 1"),
    (["--parameters", "7e9", "--gpus", "2.5"], "2.5 is not an integer"),
    (["--parameters", "7e9", "--gpus", "inf"], "inf is not an integer"),
    (["--parameters", "7e9", "--gpus", "8", "--alpha-inside", "nan"], "a message takes nan s"),
    (["--parameters", "7e9", "--gpus", "8", "--contention", "2"], "contention 2"),
    (["--parameters", "7e9", "--gpus", "many"], "invalid positive value: 'many'"),
    (["--parameters", "7e9", "--gpus", "12"], "nodes must be full"),
    (["--parameters", "7", "--gpus", "8"], "below 20 million"),
    (["--parameters", "7e9", "--gpus", "8", "--gpu", "RTX"], "invalid choice: 'RTX'"),
    (["--parameters", "7e9", "--gpus", "8", "--batch", "3", "--accumulate", "2"], "must divide the batch of 3"),
    (["--parameters", "7e9", "--gpus", "8", "--inside", "-5"], "inside is -5e\\+09 bytes/s"),
    (["--parameters", "7e9", "--gpus", "8", "--efficiency", "40"], "efficiency is 40"),
    (["--parameters", "7e9", "--gpus", "8", "--global-batch", "8", "--batch", "2"], "leave out --batch and --accumul"),
    (["--parameters", "7e9", "--gpus", "8", "--global-batch", "8", "--cp", "3"], "cp 3 does not divide 8 GPUs"),
])  # fmt: skip
def test_the_command_says_what_it_does_not_take(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert re.search(message, capsys.readouterr().err)


def test_gigabytes_are_ten_to_the_nine():
    assert GB == 1e9
