"""The reader's records beside the recorded ones: in every chart by one way, and never in the way of one."""

import numpy
import pytest

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours, figures_of_yours
from labs_helpers.measure import records, results


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A function that writes records of a machine to a folder: 'shipped' or 'own'."""
    for name, variable in (("shipped", "LABS_RESULTS"), ("own", "LABS_RECORDS")):
        monkeypatch.setenv(variable, str(tmp_path / name))

    def write(where, machine, *rows):
        path = results.path_for("gemm", machine, tmp_path / where)
        results.append(path, [row | {"on": {"machine": machine}} for row in rows])

    write("shipped", "NVIDIA H200", {"n": 1, "ms": 1.0}, {"n": 2, "ms": 2.0})
    return write


@beside_yours("gemm")
def draw(rows, power=1, title=None, prediction=None, **wanted):
    rows = rows[[all(row[key] == value for key, value in wanted.items()) for _, row in rows.iterrows()]]
    fig, ax = figures.new(title or "Time")
    ax.plot(rows["n"], rows["ms"] ** power)
    return fig


def shipped():
    return records.of_machine("gemm", "nvidia-h200", "python -m it")


def test_without_own_records_a_chart_is_the_same(measured, capsys):
    plain = draw.__wrapped__(shipped())
    assert figures.png(draw(shipped())) == figures.png(plain) and draw(shipped()).beside == {}
    assert capsys.readouterr().out == ""


def test_own_records_follow_in_a_figure_of_their_own(measured, monkeypatch, tmp_path):
    plain = figures.png(draw(shipped(), 2, prediction=7))
    measured("own", "NVIDIA H200", {"n": 1, "ms": 3.0}, {"n": 2, "ms": 4.0})
    both = draw(shipped(), 2, title="One finding", n=1)
    assert figures.png(draw(shipped(), 2, prediction=7)) == plain
    ((name, own),) = both.beside.items()
    assert name == "nvidia-h200-your-run" and list(own.axes[0].lines[0].get_ydata()) == [9.0]
    assert own.axes[0].get_title("left") == "Time\nNVIDIA H200, your run"
    monkeypatch.setenv("LABS_FIGURES", str(tmp_path))
    figures.finish(both, "time")
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["time.svg", "time_nvidia-h200-your-run.svg"]


def test_what_this_process_measured_and_own_records_are_drawn_alone(measured):
    measured("own", "NVIDIA H200", {"n": 1, "ms": 3.0})
    here = shipped().drop(columns="on.machine")
    assert not hasattr(draw(here), "beside")
    assert not hasattr(draw(records.yours("gemm")["nvidia-h200-your-run"]), "beside")


def test_a_chart_of_several_machines(measured):
    @beside_yours("gemm")
    def draw_all(tables):
        fig, axes = figures.new("Times", ncols=len(tables), squeeze=False)
        for ax, (machine, rows) in zip(axes[0], tables.items(), strict=True):
            ax.plot(rows["n"], rows["ms"])
            ax.set_title(machine)
        return fig

    measured("own", "4-core CPU", {"n": 1, "ms": 3.0})
    (own,) = draw_all({"NVIDIA H200 (recorded)": shipped()}).beside.values()
    assert own.axes[0].get_title("left") == "4-core CPU, your run" and own.get_suptitle() == "Times"


def cannot_be_shown(rows):
    fig, ax = figures.new("Times")
    ax.set_title("$\\nonsense$")
    return fig


def says_that_it_is_empty(rows):
    fig, _ = figures.new("Nothing")
    fig.empty = True
    return fig


@pytest.mark.parametrize(
    "chart", [lambda rows: draw(rows["nonsense"]), lambda rows: 1 / 0, cannot_be_shown, says_that_it_is_empty]
)
def test_too_little_measured_is_said_and_stops_no_chart(chart, measured, capsys):
    measured("own", "4-core CPU", {"n": 1})
    assert figures_of_yours(chart, "gemm") == {}
    assert capsys.readouterr().out == "4-core CPU, your run: not enough measurements for this figure.\n"


def test_a_load_chooses_what_is_drawn(measured, capsys):
    measured("own", "4-core CPU", {"n": 1, "ms": 3.0})
    drawn = []

    def chart(rows):
        drawn.append(rows)
        return draw(rows)

    assert not figures_of_yours(chart, "gemm", lambda machine: numpy.zeros(0)) and not drawn
    assert list(figures_of_yours(chart, "gemm", lambda machine: records.yours("gemm")[machine])) == [
        "4-core-cpu-your-run"
    ]
    assert capsys.readouterr().out == ""
