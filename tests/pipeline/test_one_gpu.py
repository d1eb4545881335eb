"""Stages timed one after another: their records, and the steps that follow from them."""

import pytest

from labs_helpers.measure import results
from labs_helpers.pipeline.lab10 import launches
from labs_helpers.pipeline.race import one_gpu
from labs_helpers.pipeline.records import recorded_times
from labs_helpers.pipeline.schedules import one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import simulate


def test_the_steps_follow_from_the_recorded_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_DEVICE", "cpu")
    out = tmp_path / "records.jsonl"
    one_gpu.main(["--size", "tiny", "--stages", "2", "--micro-batches", "2", "3", "--out", str(out)])
    rows = results.load(out)
    passes, steps = (rows[rows["kind"] == kind].to_dict("records") for kind in ("passes", "predicted"))
    assert [one["cut"] for one in passes] == ["equal blocks", "equal cost"] and len(steps) == 2 * 2 * 3
    for step in steps:
        times = recorded_times(next(one for one in passes if one["cut"] == step["cut"]))
        schedule = one_gpu.MAKERS[step["name"]](2, int(step["micro_batches"]))
        assert step["predicted_ms"] == pytest.approx(1e3 * simulate(schedule, times).seconds)
    assert "predicted_ms" in capsys.readouterr().out


def test_a_model_is_not_cut_into_more_stages_than_layers(capsys):
    with pytest.raises(SystemExit):
        one_gpu.main(["--size", "tiny", "--stages", "99"])
    assert "--stages is 99; tiny has" in capsys.readouterr().err


def test_the_recorded_gpu_waited_for_python():
    for host in (0, 1):
        found = launches.steps(host=host)
        assert set(found) == {(name, graphs) for name in ("1F1B", "ZB-H1") for graphs in (False, True)}
        for record in launches.recorded_passes(host=host).values():
            for name, make in (("1F1B", one_f_one_b), ("ZB-H1", zero_bubble)):
                wanted = simulate(make(2, 4), recorded_times(record)).seconds
                assert found[name, bool(record["graphs"])].seconds == wanted
        for name in ("1F1B", "ZB-H1"):
            assert found[name, True].seconds < found[name, False].seconds
