"""Test every kind on two gloo ranks: its records, and the command's options."""

import os

import cloudpickle
import pytest

from labs_helpers.data_parallel.study import __main__ as command
from labs_helpers.data_parallel.study import measure
from labs_helpers.data_parallel.study.measure import KINDS, Options
from labs_helpers.data_parallel.study.offload import crossed
from labs_helpers.data_parallel.study.records import CASES, select
from labs_helpers.data_parallel.study.replicas import WRAPPERS
from labs_helpers.data_parallel.study.report import report
from labs_helpers.data_parallel.study.stages import STAGE_OF
from labs_helpers.data_parallel.study.tables import memory_table, regime_table, wrapper_table
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from tests import real_ranks
from tests.data_parallel.study import cases
from tests.tensor_parallel import ranks as on_ranks

COUNT = 2 * 32 * 16 + 16 + 2 * (4 * 16 * 16 + 3 * 16 * 32 + 2 * 16)  # parameters of the test's model
ON_GPUS = {"data_parallel", "offload"}


@pytest.fixture(scope="module")
def found():
    for module in (cases, on_ranks):
        cloudpickle.register_pickle_by_value(module)
    wanted = {name: getattr(cases, name) for name in ("every_kind", "refused")}
    by_rank = real_ranks.run(on_ranks.run_cases, 2, wanted)
    for of_rank in by_rank:
        for result in of_rank.values():
            assert not isinstance(result, str), result
    return by_rank


@pytest.fixture(scope="module")
def rows(found):
    return frame(found[0]["every_kind"][0])


def test_all_ranks_have_the_same_records_and_every_kind_has_some(found, rows):
    first, second = (of_rank["every_kind"] for of_rank in found)
    assert first[0] == second[0] and first[2] == second[2] == list(KINDS)
    assert set(rows["kind"]) == set(CASES) - ON_GPUS
    assert "data_parallel needs several GPUs of one machine; skipped" in first[1] and not second[1]
    assert "offload needs GPUs; skipped" in first[1]
    assert first[3] == first[0] and second[3] == []  # saved, on rank 0
    assert (rows["parameters"] == COUNT).all() and (rows["gradient_bytes"] == 4 * COUNT).all()
    assert set(rows["link"]) == {"1 node"} and set(rows["backend"]) == {"gloo"} and set(rows["dtype"]) == {"float32"}


def test_records_can_be_kept_and_told(found, rows, tmp_path):
    results.append(tmp_path / "some.jsonl", found[0]["every_kind"][0])
    assert len(results.load(tmp_path / "some.jsonl")) == len(rows)
    told = report(found[0]["every_kind"][0])
    assert "stage_step\n" in told and "fully_shard" in told and "busbw_GBps" in told
    assert report([]) == "nothing was measured"


@pytest.mark.parametrize("kind", sorted(CASES.keys() - ON_GPUS))
def test_no_case_is_measured_twice_and_times_are_times(rows, kind):
    of_kind = rows[rows["kind"] == kind].dropna(axis="columns", how="all")
    assert len(select(rows, kind)) == len(of_kind)
    if "step_ms" in of_kind:
        assert (of_kind["step_ms"] > 0).all()
    if "step_p20_ms" in of_kind:
        assert (of_kind["step_p20_ms"] <= of_kind["step_p80_ms"]).all() and (of_kind["alone_ms"] > 0).all()


def test_wrappers_say_what_is_exposed_and_sent(rows):
    steps = select(rows, "wrapper", batch=1)
    assert tuple(steps["wrapper"]) == WRAPPERS
    assert (steps["exposed_ms"] == steps["step_ms"] - steps["alone_ms"]).all()
    phases = steps[["forward_ms", "backward_ms", "finish_ms", "update_ms"]].sum(axis=1)
    assert (phases < 1.01 * steps["step_ms"]).all() and (phases > 0.5 * steps["step_ms"]).all()
    sent = steps.set_index("wrapper")["sent_bytes"]
    assert sent["no synchronisation"] == 0 and sent[["naive", "flat", "overlapped", "bucketed"]].eq(4 * COUNT).all()
    assert len(wrapper_table(rows)) == len(WRAPPERS) and len(regime_table(rows)) == 1


def test_timelines_have_every_gradient_once(rows):
    for _, row in select(rows, "timeline").iterrows():
        lanes = {lane: [i for i in row["intervals"] if i[0] == lane] for lane in ("compute", "communication")}
        assert [name for _, name, *_ in lanes["compute"]] == ["forward", "backward", "finish", "update"]
        assert all(0 <= start <= stop <= row["step_ms"] for _, _, start, stop, _ in row["intervals"])
        sent = sum(size for *_, size in lanes["communication"])
        assert sent == (0 if row["wrapper"] == "no synchronisation" else 4 * COUNT)
        assert len(lanes["communication"]) >= {"naive": 21, "overlapped": 21, "bucketed": 5}.get(row["wrapper"], 0)


def test_scaling_keeps_the_sequences_or_the_share_of_each_rank(rows):
    weak, strong = (select(rows, "scaling", mode=mode).sort_values("ranks") for mode in ("weak", "strong"))
    assert list(weak["ranks"]) == list(strong["ranks"]) == [1, 2]
    assert list(weak["batch"]) == [1, 1] and list(strong["sequences"]) == [2, 2] and list(strong["batch"]) == [2, 1]


def test_accumulation_and_compression(rows):
    passes = select(rows, "accumulate")
    expected = [(1, "last pass"), (2, "last pass"), (2, "every pass")]
    assert list(zip(passes["micro_batches"], passes["sync"], strict=True)) == expected
    sent = select(rows, "compression").set_index("hook")["sent_bytes"]
    assert sent["mean"] == 4 * COUNT and (sent[["top-k 10%", "PowerSGD"]] < 2 * COUNT).all()
    curves = select(rows, "loss_curve")
    assert len(curves) == 2 * 5 and all(len(losses) == 2 for losses in curves["losses"])
    assert len({losses[0] for losses in curves["losses"]}) == 1  # the same weights and data before the first update


def test_memory_is_the_formulas(rows):
    table = memory_table(rows)
    assert len(table) == (5 + 4) * 2 * 3 and table["off"].abs().max() < 0.02
    over = select(rows, "stage_memory", stage="ZeRO-3", rank=0)
    for _, row in over.iterrows():
        blocks = [f"block {i}" for i in (0, 1)]
        forward, backward = ([f"{way}, {b}" for b in blocks] for way in ("forward", "backward"))
        assert row["moments"] == ["before", *forward, "loss", *backward[::-1], "after backward", "after the step"]
        held = dict(zip(row["moments"], row["parameters_bytes"], strict=True))
        assert held["before"] == held["after the step"] < held["forward, block 0"]
        assert len(row["gradients_bytes"]) == len(row["optimizer_bytes"]) == len(row["moments"])
        assert 0 < held["forward, block 0"] - held["before"] < 1.01 * row["formula_gathered"]


def test_stages_send_what_they_should(rows):
    steps = select(rows, "stage_step").set_index("way")
    assert list(steps.index) == list(STAGE_OF) and steps["loss"].drop("no synchronisation").std() < 1e-4
    sent = steps["sent_bytes"] / (4 * COUNT)
    assert sent[["bucketed", "ZeRO-1", "ZeRO-2", "SHARD_GRAD_OP"]].tolist() == pytest.approx([1] * 4, rel=0.02)
    assert sent["ZeRO-1, all-reduce"] == pytest.approx(1.5, rel=0.02) and 1 < sent["ZeRO-3"] < 1.5
    held = steps["state_bytes"]
    assert held["bucketed"] == held["DistributedDataParallel"] == 16 * COUNT
    assert held["ZeroRedundancyOptimizer"] < 13 * COUNT and held["fully_shard"] < 8.5 * COUNT


def test_an_offloaded_steps_records(found):
    by_optimizer, by_parameters = found[0]["every_kind"][4]
    assert by_optimizer["offload"] == "optimizer" and by_parameters["offload"] == "parameters"
    assert by_optimizer["peak_bytes"] is None and by_optimizer["threads"] >= 1
    assert by_optimizer["loss"] == pytest.approx(by_parameters["loss"], rel=1e-4)
    copies = [("Memcpy DtoH (Device -> Pinned)", 8, 2.0), ("Memcpy HtoD (Pinned -> Device)", 3, 1.0)]
    copies += [("Memcpy DtoD (Device -> Device)", 99, 9.0), ("Memcpy HtoD (Pageable -> Device)", 4, 0.5)]
    events = [{"cat": "gpu_memcpy", "name": n, "dur": 1e3 * ms, "args": {"bytes": size}} for n, size, ms in copies]
    assert crossed([*events, {"cat": "kernel", "name": "DtoH", "dur": 1.0, "args": {}}]) == {
        "to_cpu_bytes": 8, "to_cpu_ms": 2.0, "to_gpu_bytes": 7, "to_gpu_ms": 1.5,
    }  # fmt: skip


def test_wrappers_are_measured_with_each_of_the_options_and_the_rest_with_the_first(monkeypatch):
    asked = []
    monkeypatch.setattr(measure, "measure", lambda kinds, options, *given: asked.append((kinds, options.batch)) or [1])
    every = [Options(batch=batch) for batch in (1, 4, 8)]
    assert measure.measure_all(["zero", "wrappers"], every) == [1, 1, 1]
    assert measure.measure_all(["zero"], every) == [1]
    assert asked == [(["zero", "wrappers"], 1), (["wrappers"], 4), (["wrappers"], 8), (["zero"], 1)]


def test_what_does_not_fit_is_refused(found):
    said = found[0]["refused"]
    assert said["kind"].startswith("'nothing' is not one of all_reduce, wrappers, ")
    assert said["size"].startswith("size is 'huge', not one of tiny, ")
    assert said["length"] == "length is 17; a test model takes 16 tokens"
    assert said["rounds"] == "rounds is 0; at least 1 is needed"
    assert said["bucket"] == "bucket_mb is 0.0; it has to be positive"
    assert said["losses"].startswith("the loss with wrong is ") and "instead of" in said["losses"]


def test_the_command_measures_on_pretended_nodes_and_keeps_it(found, monkeypatch, tmp_path, capsys):
    asked = []

    def measured(*given):
        asked.append(given)
        return found[0]["every_kind"][0]

    monkeypatch.setattr(command, "measure_pretended", measured)
    monkeypatch.setattr(command, "can_pretend", lambda: "")
    monkeypatch.setenv("LABS_DEVICE", "cpu")
    out = tmp_path / "records.jsonl"
    where = ["--pretend-nodes", "2", "--rate", "1gbit", "--limit", "77"]
    command.main([*where, "--batches", "1", "4", "--out", str(out), "wrappers"])
    every = [Options("mini", batch, asked="1gbit") for batch in (1, 4)]
    assert asked == [(2, 1, "1gbit", ["wrappers"], every, 77)]
    kept = results.load(out)
    assert len(kept) == len(found[0]["every_kind"][0]) and kept["on.machine"].iloc[0].endswith("-core CPU")
    assert f"{len(kept)} records appended to {out}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, said", [
    ([], "no ranks: start this with torchrun"),
    (["--size", "huge"], "size is 'huge', not one of tiny"),
    (["everything"], "'everything' is not one of all_reduce, "),
    (["--pretend-nodes", "2"], "only root may make network namespaces"),
])  # fmt: skip
def test_where_it_cannot_be_measured_it_says_why(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr(command, "can_pretend", lambda: "only root may make network namespaces")
    monkeypatch.setenv("LABS_DEVICE", "cpu")
    for name in [name for name in os.environ if name.startswith("SLURM_") or name == "RANK"]:
        monkeypatch.delenv(name)
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert said in capsys.readouterr().err
