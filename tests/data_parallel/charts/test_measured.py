"""Test the figures of labs 08 and 09's measurements on made-up records with known findings."""

import pandas
import pytest

from labs_helpers.course.prediction import Prediction
from labs_helpers.data_parallel import charts
from labs_helpers.data_parallel.charts.regimes import finding
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import (
    fits,
    gradient_bytes,
    memory_table,
    messages,
    regime_table,
    scaling_table,
    stage_table,
    threshold_table,
    wrapper_table,
)
from labs_helpers.draw import figures
from labs_helpers.measure import results
from labs_helpers.measure.records import frame
from tests.data_parallel.study import study_records as made
from tests.transformer.test_charts import title, well_set

OF_PLANS = {"draw_crossing", "draw_memory", "draw_plan_memory", "draw_states"}
DRAWN = sorted({name for name in charts.__all__ if name.startswith("draw_")} - {"draw_race"} - OF_PLANS)  # the study's
RECORDED = sorted(results.results_dir().glob("data-parallel.*.jsonl"))


@pytest.fixture(scope="module")
def rows():
    return frame(made.invented())


def said(fig):
    """Return the title and the note below the figure."""
    return " ".join([title(fig), *(legend.get_title().get_text() for legend in fig.legends)]).replace("\n", " ")


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_well_set_and_say_where_they_are_from(rows, name):
    fig = getattr(charts, name)(rows)
    well_set(fig)
    assert "4-core CPU (recorded)" in said(fig) and len(figures.png(fig)) < 60_000


@pytest.mark.parametrize("name", DRAWN)
def test_without_its_records_a_figure_is_an_error_in_words(rows, name):
    for empty in (rows[:0], pandas.DataFrame()):
        with pytest.raises(ValueError, match="no records of the kind"):
            getattr(charts, name)(empty)


@pytest.mark.parametrize("name, value", [
    ("draw_all_reduce", 3.0), ("draw_wrappers", 60.0), ("draw_buckets", 2.0), ("draw_regimes", 1.5),
    ("draw_scaling", 80.0), ("draw_accumulate", 90.0),
])  # fmt: skip
def test_a_prediction_is_drawn(rows, name, value):
    fig = getattr(charts, name)(rows, prediction=Prediction("it", value))
    assert any("your prediction" in text or "(you: " in text for ax in fig.axes for text in texts(ax))


def test_a_prediction_without_a_number_is_not_drawn(rows):
    fig = charts.draw_wrappers(rows, prediction=Prediction("it", None))
    assert not any("you" in text for ax in fig.axes for text in texts(ax))


def test_links_stand_from_slow_to_fast_and_single_nodes_last(rows):
    assert links(rows) == ["1 Gb/s", "30 Gb/s", "1 node"]
    assert links(pandas.DataFrame({"link": ["1 node", "2 nodes", "NVLink", "0.9 Gb/s"]}))[0] == "0.9 Gb/s"


def test_alpha_and_beta_are_found_again(rows):
    costs = fits(rows).set_index(["link", "ranks"])
    for (link, ranks), cost in costs.iterrows():
        alpha, beta, _ = made.LINKS[link]
        assert cost["alpha_us"] == pytest.approx(ranks / 2 * alpha)
        assert cost["beta_ns_per_byte"] == pytest.approx(ranks / 2 * beta)
    assert costs["off"].max() < 1e-6 and len(costs) == 4


def test_hidden_and_exposed_shares(rows):
    table = wrapper_table(rows, link="1 Gb/s", batch=2).set_index("wrapper")
    for name, price in made.PRICE.items():
        assert table.loc[name, "hidden"] == pytest.approx(1 - price)
        assert table.loc[name, "exposed ms"] == pytest.approx(price * made.naive_ms("1 Gb/s"))
    naive, alone = table.loc["naive", "step ms"], table.loc["no synchronisation", "step ms"]
    assert table["Amdahl's bound"].tolist() == pytest.approx([naive / alone] * 6)
    # Of the flat step's communication backward's 60 ms can be hidden.
    flat = table.loc["flat", "step ms"]
    assert table.loc["bucketed", "overlap's bound"] == pytest.approx(flat / max(alone, flat - 60))
    fig = charts.draw_wrappers(rows)
    assert [ax.get_title("left") for ax in fig.axes] == ["1 Gb/s", "30 Gb/s"]
    assert {"40% saved", "50% hidden", "70% hidden", "65% hidden"} == set(texts(fig.axes[0]))
    assert f"{1 - alone / naive:.0%} of the naive step is communication" in said(fig)


def test_the_headlines_regime_is_found(rows):
    table = regime_table(rows).set_index(["link", "batch"])
    assert table["headline"].to_dict() == {
        ("1 Gb/s", 8): False, ("1 Gb/s", 2): True, ("30 Gb/s", 8): False, ("30 Gb/s", 2): False,
    }  # fmt: skip
    assert (table["× naive"] <= table["Amdahl's bound"]).all() and set(table["best"]) == {"bucketed"}
    assert finding(table.reset_index()) == "The headline holds in 1 of 4 settings"


def test_runs_with_other_sequences_are_not_mixed(rows):
    more = rows[rows["kind"] == "scaling"].assign(batch=rows["batch"] * 2, sequences=rows["sequences"] * 2)
    assert scaling_table(pandas.concat([more[more["ranks"] < 4], rows])).equals(scaling_table(rows))


def test_efficiency_is_of_the_work_that_is_done(rows):
    table = scaling_table(rows).set_index(["mode", "ranks"])
    for ranks in (1, 2, 4):
        assert table.loc[("weak", ranks), "efficiency"] == pytest.approx(1 / (1 + 0.1 * (ranks - 1)))
        alone = {n: 45 * 8 / n + 5 for n in (1, ranks)}
        strong = alone[1] / (ranks * alone[ranks] * (1 + 0.1 * (ranks - 1)))
        assert table.loc[("strong", ranks), "efficiency"] == pytest.approx(strong)
    assert f"is {1 / 1.3:.0%} (weak)" in said(charts.draw_scaling(rows))


def test_memory_and_stages(rows):
    table = memory_table(rows)
    assert len(table) == (5 + 4) * 2 * 3 and 0 < table["off"].max() < 1e-3 and table["off"].min() == 0
    assert "all in float32" in said(charts.draw_memory_over_step(rows))
    other = charts.draw_memory_over_step(rows, rank=1, layout=made.MASTER)
    assert [ax.get_title("left").split("\n")[0] for ax in other.axes] == list(made.STAGES[1:]) and "rank 1" in said(
        other
    )
    with pytest.raises(ValueError, match="no records of the layout 'fp8', but of autocast over float32, bf16"):
        charts.draw_memory_over_step(rows, layout="fp8")
    steps = stage_table(rows).set_index("way")
    assert steps.loc["DistributedDataParallel", "× DDP"] == 1 and steps.loc["ZeRO-3", "exposed ms"] == pytest.approx(70)


def test_timelines_of_the_wrappers_asked_for(rows):
    fig = charts.draw_timeline(rows, ["naive", "bucketed"], link="30 Gb/s")
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["naive", "bucketed"]
    lanes = [path for lane in fig.axes[0].collections for path in lane.get_paths() if len(path.vertices) == 5]
    ends = sorted(1e3 * path.vertices[:, 0].max() for path in lanes)
    steps = select(rows, "timeline", link="30 Gb/s", rank=0).set_index("wrapper")["step_ms"]
    assert ends[-1] == pytest.approx(steps["naive"]) and len(ends) == 10
    with pytest.raises(ValueError, match="no records of the kind 'timeline' with wrapper ring"):
        charts.draw_timeline(rows, ["ring"])


def test_which_hooks_follow_the_mean_is_told(rows):
    assert "SGD: no compression stays within 1% of the mean" in said(charts.draw_loss_curves(rows, "SGD"))
    curves = rows["kind"] == "loss_curve"
    mean = rows.loc[curves & (rows["hook"] == "mean"), "validation"].iloc[0]
    rows = rows.assign(validation=rows["validation"].where(rows["hook"] != "int8", 1.009 * mean))
    found = said(charts.draw_loss_curves(rows))
    assert "int8 stays within 1% of the mean" in found and "40 steps" in found


def test_a_bucket_of_theirs_is_closed_after_it_has_reached_the_limit(rows):
    ours = select(rows, "bucket").iloc[0]
    theirs = ours.copy()
    theirs["buckets"], theirs["gradient_bytes"] = float("nan"), 4 * theirs["parameters"]
    sizes = gradient_bytes(theirs)
    assert messages(ours) == ours["buckets"] and len(sizes) == 39 and sum(sizes) > 14e6
    # As PyTorch 2.13 counts them itself, once it has rebuilt its buckets.
    for theirs["bucket_mb"], closed in ((0.21108, 30), (0.42215, 21), (0.8443, 11), (1.6886, 8), (6.7544, 2)):
        assert messages(theirs) == closed


def test_from_how_many_tokens_on_gradients_hide(rows):
    for _, row in threshold_table(rows).iterrows():
        # On two ranks in float32 that is FLOP/s over bytes/s: 4 / 2 · 1 / 2.
        assert row["hide from"] == pytest.approx(1e3 * row["TFLOP/s"] / row["busbw GB/s"])
        assert row["hidden"] == pytest.approx(0.5)  # PRICE: flat pays 0.6, bucketed 0.3


def test_the_last_record_of_a_case_counts_and_the_races_all_reduces_too(rows):
    again = rows[(rows["kind"] == "scaling") & (rows["ranks"] == 4)].assign(step_ms=1e6)
    assert select(pandas.concat([rows, again]), "scaling", ranks=4)["step_ms"].tolist() == [1e6, 1e6]
    race = {"study": "data-parallel", "kind": "all_reduce", "group": "all", "ranks": 4}
    calls = [
        race | {"bytes": n, "call_ms": 0.02 + 4e-9 * n, "call_p20_ms": 0.02, "call_p80_ms": 0.03}
        for n in (2**10, 2**20)
    ]
    assert fits(frame(calls))["link"].tolist() == ["1 node"]
    well_set(charts.draw_all_reduce(frame(calls)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_the_committed_records_are_drawn(path):
    recorded = results.load(path)
    for name in DRAWN:
        try:
            fig = getattr(charts, name)(recorded)
        except ValueError as error:  # not every machine has every kind
            assert "no records of the kind" in str(error)
        else:
            well_set(fig)
    for heat in sorted(set(recorded["heat"].dropna())) if "heat" in recorded else ():
        for compiled in sorted(set(recorded.loc[recorded["heat"] == heat, "compiled"])):
            well_set(charts.draw_race(recorded, heat, compiled))
