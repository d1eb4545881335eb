"""Test the helpers of lab 09's cells and checks: flat memory, bytes held, freed memory, and records of any machine."""

import pandas
import pytest
import torch
from torch import nn

from labs_helpers.data_parallel.charts import recorded
from labs_helpers.data_parallel.lab09 import thresholds
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import MISTAKES, pieces_of
from labs_helpers.data_parallel.lab09.exercises import tokens_to_hide
from labs_helpers.data_parallel.lab09.flat import flat_gradient, flatten, held, states_of
from labs_helpers.data_parallel.lab09.freed_memory import watched_memory
from labs_helpers.data_parallel.lab09.training import train_alone
from labs_helpers.draw import figures
from labs_helpers.measure import results


def test_parameters_become_views_of_padded_memory():
    layer = nn.Linear(3, 2)
    before = [p.detach().clone() for p in layer.parameters()]
    whole = flatten(layer.parameters(), 5)
    assert whole.shape == (10,) and not whole[8:].any()
    assert all(torch.equal(p, old) for p, old in zip(layer.parameters(), before, strict=True))
    whole += 1
    assert torch.equal(layer.bias, before[1] + 1)
    layer(torch.ones(1, 3)).sum().backward()
    assert flat_gradient(layer.parameters(), whole).tolist() == [1.0] * 8 + [0.0] * 2


def test_memory_is_counted_once_and_freed_memory_not_at_all():
    whole = torch.zeros(10)
    assert held([whole, whole[2:4], None, whole.view(2, 5)]) == 40
    other = torch.zeros(4)
    assert held([whole, other]) == 56
    other.untyped_storage().resize_(0)
    assert held([whole, other]) == 40


def test_states_are_those_with_a_number_per_element():
    p = nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    optimizer = torch.optim.AdamW([p])
    optimizer.step()
    assert [s.shape for s in states_of(optimizer)] == [(3,), (3,)]


def test_freed_memory_reads_as_nan_and_is_freed_again_outside():
    whole, other = torch.ones(6), torch.ones(3)
    view = whole[2:4]
    with watched_memory() as watched:
        watched.watch(whole)
        whole.untyped_storage().resize_(0)
        assert not watched.alive(whole) and view.isnan().all() and whole.untyped_storage().nbytes() == 0
        whole.untyped_storage().resize_(whole.nbytes)
        assert watched.alive(whole) and view.isnan().all()
        with pytest.raises(RuntimeError, match="whole has 24 bytes"):
            whole.untyped_storage().resize_(12)
        other.untyped_storage().resize_(0)
        assert other.untyped_storage().nbytes() == 0
    whole.untyped_storage().resize_(0)
    assert whole.untyped_storage().nbytes() == 0


def test_no_mistake_is_right_everywhere():
    layouts = [((5, 2, 4), 2), ((3, 9, 1), 3), ((13, 1, 2), 4), ((5, 3, 5), 4)]
    asked = [(numels, ranks, rank) for numels, ranks in layouts for rank in range(ranks)]
    for said, mistake in MISTAKES.items():
        assert any(mistake(*one) != pieces_of(*one) for one in asked), said


def test_one_process_trains_with_and_without_clipping():
    plain, clipped = (train_alone(1, 6, decay=False, clip=clip) for clip in (False, True))
    assert plain[0] == clipped[0] and plain[1:] != clipped[1:]
    assert max(plain[-1], clipped[-1]) < plain[0] - 0.3  # each step has another text, the standard library's


def test_where_nothing_is_recorded_that_is_said(tmp_path, monkeypatch, capsys):
    def draw(rows):
        raise ValueError("no records of the kind 'stage_step'")

    (tmp_path / "data-parallel.some-cpu.jsonl").write_text('{"kind": "wrapper"}\n')
    monkeypatch.setenv("LABS_RESULTS", str(tmp_path))
    recorded.draw_recorded(draw, "test")
    assert "No record of this on GPUs yet" in capsys.readouterr().out


def test_the_reader_s_machines_follow_the_recorded_ones(tmp_path, monkeypatch, capsys):
    for name, variable in (("shipped", "LABS_RESULTS"), ("own", "LABS_RECORDS"), ("figures", "LABS_FIGURES")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    for folder, machine in (("shipped", "NVIDIA H200"), ("shipped", "4-core CPU"), ("own", "Some CPU")):
        path = results.path_for("data-parallel", machine, tmp_path / folder)
        results.append(path, {"kind": "stage_step", "ms": 1.0, "on": {"machine": machine}})
    results.append(path.with_name("data-parallel.other-cpu.jsonl"), {"kind": "wrapper"})

    def draw(rows, prediction=None):
        fig, ax = figures.new(", ".join(rows["on.machine"]))
        ax.plot(rows["ms"])
        return fig

    recorded.draw_recorded(draw, "steps", only="nvidia")
    recorded.show(draw, "stage_step", "one")
    recorded.show_all(draw, "stage_step", "all")
    assert sorted(path.stem for path in (tmp_path / "figures").iterdir()) == [
        "all_4-core-cpu", "all_nvidia-h200", "all_some-cpu-your-run",
        "one", "one_some-cpu-your-run", "steps_nvidia-h200", "steps_some-cpu-your-run",
    ]  # fmt: skip
    assert capsys.readouterr().out == 3 * "other-cpu, your run: not enough measurements for this figure.\n"


def test_a_threshold_is_worked_out_of_a_race_and_of_its_all_reduces():
    count = 953_223_168
    race = {"kind": "race", "heat": "shards", "compiled": True, "world_size": 2, "size": "1b", "batch": 4,
            "length": 1024, "dtype": "bfloat16"}  # fmt: skip
    steps = [race | {"candidate": name, "step_ms": ms} for name, ms in (("no synchronisation", 50.0), ("ZeRO-3", 60.0))]
    calls = [{"kind": "all_reduce", "ranks": 2, "bytes": n, "call_ms": ms} for n, ms in ((1e6, 1.0), (1e9, 4.0))]
    (found,) = thresholds.recorded_rates(pandas.DataFrame([*steps, *calls]))
    assert found == pytest.approx((6 * count * 4096 / 0.05, 250e9, 2, 2, 4096, 10, 60))
    table = thresholds.table(tokens_to_hide, {"here": (2e9, 1e9, 2, 4)}, {"there": pandas.DataFrame([*steps, *calls])})
    assert table.loc["here", "tokens to hide"] == "2" and table.loc["here", "exposed ms"] == "–"
    assert table.loc["there, 2 ranks", "tokens to hide"] == f"{6 * count * 4096 / 0.05 / 250e9 / 2:.4g}"
    assert thresholds.recorded_rates(pandas.DataFrame([*steps])) == []
