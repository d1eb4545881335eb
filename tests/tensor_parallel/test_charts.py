"""Test the figures of lab 07's measurements on made-up records with known findings."""

import pandas
import pytest

from labs_helpers.draw import figures
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from labs_helpers.tensor_parallel import charts, study
from labs_helpers.tensor_parallel.predict import predict, predict_gpus
from labs_helpers.tensor_parallel.records import links, select
from labs_helpers.tensor_parallel.traffic import parameters_per_rank
from tests.tensor_parallel import study_records
from tests.transformer.test_charts import title, well_set


@pytest.fixture(scope="module")
def rows():
    return frame(study_records.invented())


@pytest.fixture(scope="module")
def gpus():
    return frame(study_records.gpu_race())


def below(fig):
    """The words below the axes, over the legend."""
    return fig.legends[0].get_title().get_text()


def bars(ax, names=None):
    """{the tick's label: where its bar ends}"""
    names = names or [tick.get_text() for tick in ax.get_yticklabels()]
    ends = {name: 0.0 for name in names}
    for bar in ax.patches:
        name = names[round(bar.get_y() + bar.get_height() / 2)]
        ends[name] = max(ends[name], bar.get_x() + bar.get_width())
    return ends


@pytest.mark.parametrize("name", ["draw_layouts", "draw_schemes", "draw_bytes", "draw_memory"])
def test_figures_are_well_set_and_say_where_they_are_from(rows, name):
    fig = getattr(charts, name)(rows)
    well_set(fig)
    assert "4-core CPU (recorded)" in below(fig) and len(figures.png(fig)) < 60_000


@pytest.mark.parametrize("length", [study.LENGTH, study.SHORT])
def test_layouts_have_a_bar_and_a_prediction_each(rows, length):
    fig = charts.draw_layouts(rows, length)
    assert [ax.get_title("left") for ax in fig.axes] == ["2 nodes, 1 Gb/s", "2 nodes, 20 Gb/s", "shared memory"]
    names = [str(variant) for variant in study.LAYOUTS]
    assert list(bars(fig.axes[0])) == names
    for ax, link in zip(fig.axes, study_records.LINKS, strict=True):
        steps = select(
            rows, "step", link=link, length=length, scheme="megatron", sequence_parallel=False, overlap=False
        )
        told = sorted(line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "D")
        assert told == pytest.approx(sorted(steps["step_ms"] / 1e3))
        assert sorted(end for end in bars(ax, names).values() if end) == pytest.approx(sorted(steps["step_ms"] / 1e3))
    assert "predicted: off by +0% to +0%" in [text.get_text() for text in fig.legends[0].get_texts()]


def test_the_title_names_the_fastest_where_the_spreads_tell_it(rows):
    times = ["step_ms", "step_p20_ms", "step_p80_ms"]
    turned = rows.assign(**{name: rows[name].where(rows["tp"] == 8, 10 * rows[name]) for name in times})
    assert title(charts.draw_layouts(turned)).startswith("1 × 8 is the fastest over every link")
    near = turned.assign(step_p20_ms=turned["step_p20_ms"].where(turned["dp"] != 8, turned["step_p20_ms"] / 100))
    assert title(charts.draw_layouts(near)).startswith("8 × 1 and 1 × 8 are among the fastest over every link")
    slower = (rows["tp"] == 8) == (rows["link"] == "1 Gb/s")
    mixed = rows.assign(**{name: rows[name].where(~slower, 10 * rows[name]) for name in times})
    assert title(charts.draw_layouts(mixed)).startswith("No layout is the fastest over every link")


def test_naive_steps_are_drawn_beside_megatrons(rows):
    fig = charts.draw_schemes(rows)
    expected = [
        f"{layout} {scheme}" for layout in ("2 × 4", "1 × 8") for scheme in ("megatron", "naive", "sequence-parallel")
    ]
    assert [tick.get_text() for tick in fig.axes[0].get_yticklabels()] == expected
    steps = select(rows, "step", link="1 Gb/s", dp=1, tp=8, length=study.LENGTH, sequence_parallel=False)
    times = steps.set_index("scheme")["step_ms"]
    assert f"The naive scheme takes up to {times['naive'] / times['megatron']:.2g} times Megatron's" in title(fig)


def test_bytes_by_formula_and_counted(rows):
    fig = charts.draw_bytes(rows)
    counts = select(rows, "count", overlap=False)
    told = counts["tp_bytes_by_formula"] + counts["dp_bytes_by_formula"]
    assert sorted(bars(fig.axes[0]).values()) == pytest.approx(sorted(told))
    marks = [line.get_xdata() for line in fig.axes[0].get_lines() if line.get_marker() == "|"]
    assert sorted(x[0] for x in marks) == sorted(told) and all(len(x) == 8 for x in marks)
    assert "as the formula says" in title(fig)
    several = study.LAYOUTS[3]
    off = study_records.count(several, off=int(0.02 * told.max()))
    one = {name: value for name, value in counts.iloc[0].items() if name not in off}
    wrong = pandas.concat([rows, pandas.DataFrame([one | off])], ignore_index=True)
    assert "off the formula" in title(charts.draw_bytes(wrong))


def test_memory_by_tp(rows):
    fig = charts.draw_memory(rows)
    labels = [tick.get_text().replace("\n", " ") for tick in fig.axes[0].get_xticklabels()]
    assert labels == ["tp 1", "tp 2", "tp 4", "tp 8", "tp 4 sequence- parallel", "tp 8 sequence- parallel"]
    counts = select(rows, "count", overlap=False, scheme="megatron", sequence_parallel=False).set_index("tp")
    added = counts["activation_bytes"]
    assert f"{added[8] / added[1]:.2g} times its activations" in title(fig)
    parts = ("parameter", "gradient", "optimizer", "activation")
    tops = [
        max(bar.get_y() + bar.get_height() for bar in fig.axes[0].patches if round(bar.get_x() + 0.31) == x)
        for x in (0, 3)
    ]
    assert tops == [sum(counts.loc[tp, f"{name}_bytes"] for name in parts) for tp in (1, 8)]


def test_predictions_are_those_of_the_model(rows):
    for _, row in select(rows, "step").iterrows():
        told = predict(rows, row)
        assert told.step_ms == pytest.approx(row["step_ms"])
        assert (told.tp_ms, told.dp_ms) == pytest.approx((row["tp_ms"], row["dp_ms"]))


def test_the_last_name_of_a_link_counts(rows):
    again = frame([record | {"link": "1.1 Gb/s"} for record in study_records.invented() if record["link"] == "1 Gb/s"])
    assert links(pandas.concat([rows, again], ignore_index=True)) == ["1.1 Gb/s", "20 Gb/s", "shared memory"]


def test_gpus_against_parallelize_module(gpus):
    fig = charts.draw_gpus(gpus)
    well_set(fig)
    assert "Our step takes 0.90 to 0.95 times as long" in title(fig) and "NVIDIA H200" in below(fig)
    left, right = fig.axes
    legend = [text.get_text() for text in fig.legends[0].get_texts()]
    assert len(left.get_yticklabels()) == 8 and legend == ["ours", "parallelize_module", "predicted"]
    assert sum("ours block by block" in label.get_text() for label in left.get_yticklabels()) == 4
    ours = gpus[(gpus["library"] == "ours") & (gpus["compiled"] == True) & (gpus["average"] == False)]  # noqa: E712
    whole = ours.assign(whole=True, step_ms=ours["step_ms"] / 2)
    faster = charts.draw_gpus(pandas.concat([gpus, whole]))
    assert "takes 0.45 to 0.95 times" in title(faster)  # of two ways to compile it the faster one
    assert sum("ours as a whole" in label.get_text() for label in faster.axes[0].get_yticklabels()) == 4
    told = [line.get_xdata()[0] for line in right.get_lines() if line.get_marker() == "D"]
    assert len(told) == 6
    average = gpus[(gpus["average"] == True) & (gpus["tp"] == 2) & (gpus["compiled"] == False)].iloc[0]  # noqa: E712
    alone = gpus[(gpus["library"] == "compute alone") & (gpus["tp"] == 2)].iloc[0]
    predicted = predict_gpus(gpus, average)
    gradients = 2 * parameters_per_rank(study.CONFIG, 2)
    assert predicted.compute_ms == alone["step_ms"] and predicted.dp_ms == pytest.approx(0.02 + gradients / 4e8)


@pytest.mark.parametrize("name", charts.__all__)
def test_without_its_records_a_figure_is_an_error_in_words(rows, name):
    with pytest.raises(ValueError, match="no records"):
        getattr(charts, name)(rows[rows["kind"] == "link"])
    with pytest.raises(ValueError, match="no records"):
        getattr(charts, name)(pandas.DataFrame())


@pytest.mark.parametrize(
    "path", sorted(results.results_dir().glob("tensor-parallel.*.jsonl")), ids=lambda path: path.name
)
def test_the_committed_records_are_drawn(path):
    recorded = results.load(path)
    names = {
        "step": ["draw_layouts", "draw_schemes", "draw_bytes", "draw_memory"],
        "gpu_step": ["draw_gpus"],
    }
    for kind in set(recorded["kind"]) & names.keys():
        for name in names[kind]:
            well_set(getattr(charts, name)(recorded))
