"""The race times what is right and nothing else, under every setting; tables and figures draw what is recorded."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import mpi4py
import numpy as np
import pandas
import pytest

from labs_helpers.collectives import charts, choose, interface, study
from labs_helpers.collectives.cost_model import BUS_FACTOR, Costs, cost, crossover
from labs_helpers.collectives.race import native_settings, race
from labs_helpers.collectives.race.arena import LEAST, LINE, Arena
from labs_helpers.collectives.race.race import SIZES, contender, counts, race_documented
from labs_helpers.collectives.race.records import compare, costs_of, fastest, middle, table
from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures
from labs_helpers.launch.mpirun import RanksFailed, mpirun, run_on_ranks
from labs_helpers.measure import results
from labs_helpers.measure.records import frame

SCRIPT = Path(__file__).parents[2] / "mpi_scripts" / "bench_collectives.py"
MACHINE = Costs(alpha=1e-6, beta=1e-10, gamma=1.5e-10, copy=8e-11)
OURS = {"allreduce": ("naive", "ring", "recursive_doubling", "rabenseifner", "shared_memory"),
        "alltoall": ("pairwise", "shared_memory")}  # fmt: skip
OPEN_MPI_4 = {"coll:tuned", "coll:sm", "coll:han", "btl:vader"}


def times(us: float) -> dict:
    return {"median_us": us, "p20_us": 0.9 * us, "p80_us": 1.2 * us, "runs": 9}


def raced(function, algorithm, ranks, size, us, setting="default") -> dict:
    return {
        "kind": "race",
        "function": function,
        "algorithm": algorithm,
        "ranks": ranks,
        "nodes": 1,
        "bytes": size,
        "setting": setting,
        **times(us),
        "algbw_GBps": size / us / 1e3,
        "busbw_GBps": size / us / 1e3 * BUS_FACTOR[function](ranks),
    }


def invented() -> list[dict]:
    """Records of a machine that keeps exactly to its model; native is slower by default, faster as a forced ring."""
    records = []
    for ranks in (2, 4, 8):
        for size in (8 * 4**i for i in range(11)):
            records += [{"kind": "ping_pong", "ranks": ranks, "together": together, "bytes": size,
                         **times(1e6 * (MACHINE.alpha + size * MACHINE.beta * (2 - together)))}
                        for together in (False, True)]  # fmt: skip
            records += [{"kind": "local", "ranks": ranks, "operation": name, "bytes": size,
                         **times(0.3 + 1e6 * size * rate)}
                        for name, rate in (("reduce", MACHINE.gamma), ("copy", MACHINE.copy))]  # fmt: skip
        for function, names in OURS.items():
            for size in SIZES:
                mine = [
                    raced(function, name, ranks, size, 1e6 * cost(function, name, ranks, size, MACHINE))
                    for name in names
                ]
                best = min(record["median_us"] for record in mine)
                records += [
                    *mine,
                    raced(function, "native", ranks, size, 1.5 * best),
                    raced(function, "native", ranks, size, (0.8 if size > 1e4 else 2) * best, "tuned: ring"),
                ]
    return [
        {"study": "collectives", "setting": "default", **record, "on": {"machine": "16-core CPU"}} for record in records
    ]


@pytest.fixture(scope="module")
def rows():
    return frame(invented())


def lines(ax) -> dict:
    return {line.get_label(): line for line in ax.get_lines()}


def test_an_arena_gives_new_memory_each_time_and_small_whole_numbers():
    arena = Arena(100, offset=3)
    first, second = arena.take(3), arena.take(3)
    assert (second.ctypes.data - first.ctypes.data) == LINE and first.tolist() == [3, 4, 5]
    assert arena.take(0).size == 0 and arena.take(LEAST // 8).size == LEAST // 8
    large = Arena(LEAST)
    assert not np.shares_memory(large.take(LEAST // 8), large.take(LEAST // 8))
    with pytest.raises(ValueError, match="the arena has 4194304 elements"):
        arena.take(10**8)


def test_the_settings_are_single_copy_and_each_algorithm_by_force():
    both = native_settings.native_settings(("allreduce", "alltoall"), 8, OPEN_MPI_4)
    names = [setting.names for setting in both]
    assert names[0] == {"allreduce": "default", "alltoall": "default"} and both[0].env == {}
    assert both[1].env == {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    assert all(s.env["OMPI_MCA_btl_vader_single_copy_mechanism"] == "cma" for s in both[2:])
    forced = {s.names.get("allreduce"): s.env for s in both}
    assert forced["tuned: recursive doubling"]["OMPI_MCA_coll_tuned_allreduce_algorithm"] == "3"
    assert forced["tuned: recursive doubling"]["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "1"
    assert {"tuned: rabenseifner", "sm", "han"} <= set(forced) and "xhc" not in forced
    assert not any("alltoall" in names for names in (s.names for s in both if "sm" in s.names.values()))


def test_two_ranks_have_an_algorithm_more_and_version_5_its_own_single_copy():
    two = native_settings.native_settings(("alltoall",), 2, {"coll:tuned", "coll:xhc", "smsc:cma"})
    assert [s.names["alltoall"] for s in two][-1] == "tuned: two ranks" and two[2].env == {"OMPI_MCA_smsc": "cma"}
    assert len(native_settings.native_settings(("alltoall",), 8, {"coll:tuned", "smsc:cma"})) == len(two) - 1
    xhc = native_settings.native_settings(("allreduce",), 8, {"coll:xhc", "smsc:cma"})[-1]
    assert xhc.names == {"allreduce": "xhc"} and xhc.env["OMPI_MCA_coll_xhc_priority"] == "100"


def test_another_mpi_is_raced_by_default_alone():
    (only,) = native_settings.native_settings(("allreduce",), 4, set())
    assert only.names == {"allreduce": "default"} and only.env == {}


def test_buffers_have_the_lengths_that_each_function_asks_for():
    assert counts("allreduce", 10, 4, 1) == (10, 10) and counts("broadcast", 10, 4, 1) == (10, 0)
    assert [counts("reduce_scatter", 10, 4, rank)[1] for rank in range(4)] == [3, 3, 2, 2]
    assert counts("allgather", 12, 4, 0) == (3, 12) and counts("alltoall", 12, 4, 0) == (12, 12)


def test_real_ranks_are_raced_and_play_ping_pong():
    library, records = run_on_ranks(
        study.race_on, 2, {"allreduce": ("native",), "alltoall": ("native",)}, (8, 1032), 0.001, True, timeout=60
    )[0]
    raced = pandas.DataFrame([r for r in records if r["kind"] == "race"])
    assert set(zip(raced["function"], raced["bytes"], strict=True)) == {
        ("allreduce", 8),
        ("allreduce", 1032),
        ("alltoall", 1024),
    }  # blocks are equal: rounded down, 8 bytes to nothing
    assert (raced["p20_us"] <= raced["median_us"]).all() and (raced["median_us"] <= raced["p80_us"]).all()
    assert (raced["runs"] >= raced["rounds"]).all() and (raced["nodes"] == 1).all() and library
    assert raced["algbw_GBps"].tolist() == pytest.approx((raced["bytes"] / raced["median_us"] / 1e3).tolist())
    played = [r for r in records if r["kind"] != "race"]
    assert {(r["kind"], r.get("together", r.get("operation"))) for r in played} == {
        ("ping_pong", False),
        ("ping_pong", True),
        ("local", "reduce"),
        ("local", "copy"),
    }
    assert all(r["median_us"] > 0 for r in played) and costs_of(frame(records), 2)


@pytest.mark.parametrize("call_s, warm_up_s, runs", [
    (0.001, 0.001, 20),  # as many as fit into the 20 ms of a round
    (0.01, 0.01, 2),
    (0.02, 0.02, 2),  # the least
    (1e-6, 1e-6, 200),  # the most
    (1e-6, 0.02, 200),  # the second call of the warm-up counts
    (0.04, 0.04, 1),  # slow: once
    (1e-6, 0.04, 1),
])  # fmt: skip
def test_a_round_has_as_many_runs_as_its_time_allows(call_s, warm_up_s, runs, monkeypatch):
    now, comm = [0.0], SimpleNamespace(Barrier=lambda: None, allgather=lambda value: [0.0, value])
    lengths = iter([warm_up_s, call_s])

    def call(send, receive):
        now[0] += next(lengths)

    monkeypatch.setattr(race, "perf_counter", lambda: now[0])
    assert race._runs(comm, call, lambda: (None, None), seconds=0.02, least=2) == runs


def test_every_native_function_can_be_raced_and_ours_that_is_wrong_is_not_timed():
    def everything(comm):
        ran = {function: race.race(comm, function, ("native",), (48,), 0.001, 1) for function in BUS_FACTOR}
        true = race.contender
        race.contender = lambda comm, function, name, n: (
            true(comm, function, "native", n) if name == "native" else (lambda send, receive: receive.fill(0))
        )
        try:
            race.race(comm, "allreduce", ("forgets",), (48,), 0.001, 1)
        except ValueError as error:
            return ran, str(error)

    (ran, error), other = run_on_ranks(everything, 2, timeout=60)
    assert all(len(records) == 1 for records in ran.values()) and not any(other[0].values())
    assert error == ("allreduce forgets at 48 bytes on 2 ranks: the result differs from native's on ranks [0, 1]")


@pytest.mark.parametrize("script, option, value, told", [
    ("bench", "--native-settings", "0", "0 is not a number from 1 up"),
    ("bench", "--seconds", "-1", "-1 is not positive"),
    ("bench", "--out", "/dev/null/folder", "/dev/null/folder cannot be a folder: /dev/null is a file"),
    ("bench", "--out", "no/such/file.jsonl", "is in a folder that does not exist"),
    ("check", "--ranks-per-node", "0", "0 is not a number from 1 up"),
    ("check", "--sizes", "-1", "-1 is negative"),
    ("check", "--dtypes", "bool", "bool does not hold numbers"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused_before_anything_runs(script, option, value, told, monkeypatch, capsys):
    mpi4py.rc(
        initialize=False, finalize=False
    )  # a script imports mpi4py.MPI into this process: that starts no MPI here
    monkeypatch.setattr(sys, "argv", [script, f"{option}={value}"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(SCRIPT.with_name(f"{script}_collectives.py")))["main"]()
    assert f"error: argument {option}: " in (said := capsys.readouterr().err) and told in said


def test_the_documented_call_is_raced_beside_the_one_that_is_timed_and_native():
    records = run_on_ranks(race_documented, 2, (8,), 0.001, timeout=60)[0]
    assert {record["kind"] for record in records} == {"documented call"}
    assert [record["algorithm"] for record in records] == ["auto", "auto, validate=True", "native"]
    assert [record["validate"] for record in records] == [False, True, None]


def test_the_script_runs_alone_and_appends_records_with_their_settings(tmp_path):
    out = tmp_path / "collectives.jsonl"
    said, silent = mpirun(
        SCRIPT,
        2,
        "--functions",
        "broadcast",
        "--algorithms",
        "native",
        "--largest",
        64,
        "--seconds",
        0.001,
        "--out",
        out,
        timeout=100,
        env={"OMPI_MCA_mpi_show_handle_leaks": "0"},
    )
    assert silent == "" and "4 records appended" in said
    kept = results.load(out)
    assert set(kept["bytes"]) == {8, 16, 32, 64} and kept["on.commit"].notna().all()
    assert all(s["OMPI_MCA_mpi_show_handle_leaks"] == "0" for s in kept["on.mpi_settings"])
    assert kept["on.machine"].str.contains("core").all() and (kept["setting"] == "default").all()


@pytest.fixture
def pretended(monkeypatch):
    """`run_on_ranks` of a machine that races in no time; the forced rings fail there. Returns the environments."""
    seen = []

    def run(function, ranks, algorithms, sizes, seconds, ping_pong, timeout, env):
        seen.append(env)
        if "4" in env.values():
            raise RanksFailed("race_on failed on 2 ranks.\nrank 0 raised: ...", [], {}, {}, [])
        kept = ["race"] + ["ping_pong", "local"] * ping_pong
        return [
            (
                "Open MPI v4",
                [
                    record
                    for record in map(dict, invented())
                    if record["kind"] in kept
                    and record["ranks"] == ranks
                    and record.pop("setting") == "default"
                    and record.pop("on")
                    and record.get("algorithm") in (None, *algorithms.get(record.get("function"), ()))
                ],
            )
        ]

    monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", run)
    monkeypatch.setattr(native_settings, "components", lambda: OPEN_MPI_4)
    return seen


def test_the_command_races_every_setting_and_ends_with_a_table(pretended, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LABS_DEVICE", "cpu")
    out, auto = tmp_path / "race.jsonl", tmp_path / "auto.json"
    study.main(["--ranks", "2", "4", "--turns", "2", "--out", str(out), "--table", str(auto)])
    kept, said = results.load(out), capsys.readouterr().out
    assert len(pretended) == 2 * 2 * 11
    assert "2 ranks: native, tuned: ring / tuned: linear, synchronised" in said.replace(
        "tuned: linear, synchronised / tuned: ring", "tuned: ring / tuned: linear, synchronised"
    )
    native = kept[kept["algorithm"] == "native"]
    assert {"default", "single copy", "tuned: linear", "han"} <= set(native["setting"])
    assert "tuned: ring" not in set(native["setting"])
    assert set(kept[kept["setting"] != "default"]["algorithm"]) == {"native"}
    forced = kept[(kept["setting"] == "tuned: rabenseifner")].iloc[0]
    assert forced["on.mpi_settings"]["OMPI_MCA_coll_tuned_allreduce_algorithm"] == "6"
    assert (kept["on.mpi"] == "Open MPI v4").all() and kept["on.time"].notna().all()
    assert "hierarchical" not in set(kept["algorithm"])
    assert "allreduce, 4 ranks\n" in said and "ours µs" in said and said.count("\n67108864 ") == 2
    assert json.loads(auto.read_text())


def test_where_single_copy_is_refused_the_algorithms_are_raced_without(monkeypatch, capsys):
    seen = []

    def run(*_, timeout, env):
        seen.append(env)
        if "cma" in env.values():
            raise RanksFailed("race_on failed on 2 ranks.", [], {}, {}, [])
        return [("Open MPI v4", [raced("allreduce", "native", 2, 8, 1.0)])]

    monkeypatch.setattr("labs_helpers.launch.mpirun.run_on_ranks", run)
    monkeypatch.setattr(native_settings, "components", lambda: OPEN_MPI_4)
    records = study.measure(2, ("allreduce",))
    assert sum("cma" in env.values() for env in seen) == 1 and len(records) == len(seen) - 1
    assert {"tuned: ring", "single copy off"} <= {r["setting"] for r in records}
    assert "2 ranks: native, single copy, is left out: race_on failed" in capsys.readouterr().out
    assert not any("cma" in r["on"]["mpi_settings"].values() for r in records)


def test_the_table_sets_the_best_of_ours_against_the_best_native(rows):
    compared = compare(rows, "alltoall", 8).set_index("bytes")
    small, large = compared.loc[64], compared.loc[2**26]
    assert (small["algorithm"], large["algorithm"]) == ("shared_memory", "pairwise")
    assert (small["setting"], large["setting"]) == ("default", "tuned: ring")
    assert (small["ratio"], large["ratio"]) == pytest.approx((1 / 1.5, 1 / 0.8))
    assert large["native"] == pytest.approx(1.5 * large["ours"])
    assert list(table(rows, "alltoall", 8).iloc[-1])[-2:] == ["tuned: ring", "1.25"]


def test_of_the_turns_the_middle_one_counts():
    turns = [raced("allreduce", "ring", 8, size, us) for size, us in ((64, 5.0), (64, 1.0), (128, 3.0), (64, 2.0))]
    assert [(r["bytes"], r["median_us"], r["turns"]) for r in middle(turns)] == [(64, 2.0, 3), (128, 3.0, 1)]


def test_the_newest_record_counts(rows):
    newer = frame([raced("allreduce", "naive", 8, 8, 0.5)])
    compared = compare(pandas.concat([rows, newer], ignore_index=True), "allreduce", 8)
    assert compared.iloc[0]["algorithm"] == "naive" and compared.iloc[0]["ours"] == 0.5


def test_the_fastest_of_ours_are_the_table_of_auto(rows, tmp_path):
    chosen = fastest(rows)
    allreduce = [
        (r["up_to_bytes"], r["algorithm"])
        for r in chosen
        if r["function"] == "allreduce" and r["ranks"] == 8 and r["nodes"] == 1
    ]
    compared = compare(rows, "allreduce", 8).set_index("bytes")
    assert [name for _, name in allreduce] == ["shared_memory"] and allreduce[-1][0] is None
    assert set(compared["algorithm"]) == {"shared_memory"}
    file = tmp_path / "auto.json"
    file.write_text(json.dumps(chosen))
    assert choose.load(file) == chosen


def test_auto_changes_half_way_and_not_for_five_percent():
    times = {"ring": (9, 5.2, 5, 5), "naive": (5, 5, 5.1, 9), "native": (1, 1, 1, 1)}
    rows = frame(
        [
            raced("allreduce", name, 4, size, us)
            for name, each in times.items()
            for size, us in zip((16, 64, 256, 1024), each, strict=True)
        ]
    )
    assert [(r["up_to_bytes"], r["algorithm"]) for r in fastest(rows)] == [(512, "naive"), (None, "ring")]


def test_nothing_to_compare_is_said(rows):
    with pytest.raises(ValueError, match="no records of the kind 'race' with function broadcast"):
        compare(rows, "broadcast", 8)


def test_the_fit_gives_back_the_machine(rows):
    costs = costs_of(rows, 8)
    assert (costs.alpha, costs.beta) == pytest.approx((MACHINE.alpha, MACHINE.beta))
    assert (costs.gamma, costs.copy) == pytest.approx((MACHINE.gamma, MACHINE.copy))
    assert costs_of(rows, 8, together=False).beta == pytest.approx(2 * MACHINE.beta)
    with pytest.raises(ValueError, match="no records of the kind 'ping_pong' with ranks 3"):
        costs_of(rows, 3)


def test_the_race_has_a_panel_a_rank_count_and_shows_the_ratio_to_natives_best(rows):
    for function, names in OURS.items():
        drawn = charts.draw_race(rows, function)
        assert len(drawn.axes) == 3 and {*names, charts.PLAIN} == {
            name for name in lines(drawn.axes[0]) if not name.startswith("_")
        }
    plain = lines(drawn.axes[2])[charts.PLAIN].get_ydata()
    assert plain[0] == pytest.approx(1) and plain[-1] == pytest.approx(1.5 / 0.8)


def test_bandwidth_is_in_bytes_a_second(rows):
    ring = lines(charts.draw_bandwidth(rows).axes[0])["ring"]
    assert ring.get_ydata()[-1] == pytest.approx(2**26 * 1.75 / cost("allreduce", "ring", 8, 2**26, MACHINE))


def test_the_measured_crossover_is_where_the_model_puts_it(rows):
    at = crossover("allreduce", "recursive_doubling", "ring", 8, MACHINE)
    race = rows[(rows["kind"] == "race") & (rows["function"] == "allreduce") & (rows["ranks"] == 8)]
    few, ring = (
        race[race["algorithm"] == name].set_index("bytes")["median_us"] for name in ("recursive_doubling", "ring")
    )
    assert charts.measured_crossover(few, ring)[0] == pytest.approx(at, rel=0.05)
    assert charts.measured_crossover(ring, ring * 2) is None and charts.measured_crossover(ring, ring / 2) is None


def test_a_prediction_without_a_number_draws_nothing(rows):
    without, with_it = (charts.draw_crossover(rows, prediction=Prediction("?", value)) for value in (None, 5e4))
    assert len(with_it.axes[0].get_lines()) == len(without.axes[0].get_lines()) + 1
    assert "predicted: " in " ".join(text.get_text() for text in without.axes[0].texts)


def test_ping_pong_is_drawn_with_its_fit(rows):
    drawn = " ".join(text.get_text() for text in charts.draw_ping_pong(rows).axes[0].texts)
    assert "one pair:\nα = 1 µs\n1/β = 5 GB/s" in drawn and "all pairs:\nα = 1 µs\n1/β = 10 GB/s" in drawn


def test_the_figures_stay_small_and_curves_differ(rows):
    for fig in (
        charts.draw_race(rows),
        charts.draw_bandwidth(rows, "alltoall"),
        charts.draw_crossover(rows),
        charts.draw_ping_pong(rows),
    ):
        assert len(figures.png(fig)) < 100_000
    for names in OURS.values():
        assert len({charts.CURVES.looks[name] for name in (*names, charts.PLAIN, charts.BEST)}) == len(names) + 2


def test_a_contender_of_ours_is_called_without_the_check_of_ranks(monkeypatch):
    seen = {}
    monkeypatch.setattr(interface, "alltoall", lambda comm, send, receive, **settings: seen.update(settings))
    contender(None, "alltoall", "pairwise", 8)(None, None)
    assert seen == {"algorithm": "pairwise", "validate": False}


def test_the_committed_record_is_whole_and_says_where_it_is_from():
    if not results.path_for("collectives", "16-core CPU").is_file():
        pytest.skip("not measured yet")
    record = study.load()
    assert record.attrs["damaged"] == [] and (record["on.machine"] == "16-core CPU").all()
    assert record[["on.mpi", "on.mpi_settings", "on.commit", "on.time"]].notna().all().all()
    for function in study.FUNCTIONS:
        for ranks in (2, 4, 8):
            assert set(compare(record, function, ranks)["bytes"]) >= set(SIZES[6:])
        figures.png(charts.draw_race(record, function))
    figures.png(charts.draw_crossover(record))
