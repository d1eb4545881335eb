"""Test the study at random shapes: its shapes, records and figures, and that it resumes after an interrupt."""

import pandas
import pytest
import torch

from labs_helpers.draw import figures
from labs_helpers.gemm import random_study, study
from labs_helpers.gemm.random_shapes import KINDS, random_shapes
from labs_helpers.measure import results
from labs_helpers.measure import study as measure_study


def test_the_shapes_are_those_of_their_seed_and_as_described():
    shapes = random_shapes(200, 7)
    assert shapes[:50] == random_shapes(50, 7) and shapes != random_shapes(200, 8)
    by_kind = {kind: [s for s in shapes if s.kind == kind] for kind in KINDS}
    assert len(by_kind["aligned"]) > 100 and min(map(len, by_kind.values())) > 25
    for _, M, N, K in by_kind["aligned"]:
        assert all(500 <= x <= 12_000 and x % 8 == 0 for x in (M, N, K))
    for _, M, N, K in by_kind["unaligned"]:
        assert (N % 2 or K % 2) and all(499 <= x <= 12_000 for x in (M, N, K))
    assert {(bool(s.N % 2), bool(s.K % 2)) for s in by_kind["unaligned"]} == {
        (True, True),
        (True, False),
        (False, True),
    }
    for _, M, N, K in by_kind["few rows"]:
        assert 1 <= M <= 128 and all(2048 <= x <= 16_384 and x % 8 == 0 for x in (N, K))
    median = sorted(s.M for s in by_kind["aligned"])[len(by_kind["aligned"]) // 2]
    assert 1800 < median < 3400  # log-uniform: the geometric mean of 500 and 12,000 is 2,450
    assert max(max(s[1:]) for s in random_shapes(200, 7, small=True)) <= 512


@pytest.mark.skipif(random_study.this_machine().device == "cuda", reason="on a CPU: small shapes")
def test_it_goes_on_where_it_was_ended(tmp_path, capsys, monkeypatch):
    out = tmp_path / "random.jsonl"
    settings = {"autotuned": 0, "compile_": False, "rounds": 1, "ms": 1}
    first = random_study.run(3, 7, torch.float32, out, **settings)
    assert {r["index"] for r in first} == {0, 1, 2} and {r["name"] for r in first} == {study.EAGER, "addmm + relu"}
    more = random_study.run(5, 7, torch.float32, out, **settings)
    assert {r["index"] for r in more} == {3, 4}
    assert random_study.run(5, 7, torch.float32, out, **settings) == []
    assert random_study.run(6, 7, torch.float32, out, seconds=0, **settings) == []
    assert "are over before (Shape(kind=" in capsys.readouterr().out
    frame = results.load(out)
    assert (frame["median_ms"] > 0).all() and frame["on.machine"].notna().all() and len(frame) == 10
    monkeypatch.setattr(measure_study, "provenance", lambda: dict(first[0]["on"], commit="new"))
    assert {r["index"] for r in random_study.run(1, 7, torch.float32, out, **settings)} == {0}


def test_what_is_wrong_or_fails_has_an_error_and_no_time():
    def broken(a, b, c):
        raise RuntimeError("no")

    candidates = {study.EAGER: study.formula, "no ReLU": lambda a, b, c: a @ b + c, "broken": broken}
    shape = random_shapes(1, 7, small=True)[0]
    records = {r["name"]: r for r in random_study.measure_shape(shape, torch.float32, candidates, 1, 1)}
    assert "median_ms" in records[study.EAGER] and "wrong" in records["no ReLU"]["error"]
    assert records["broken"]["error"] == "RuntimeError: no" and "median_ms" not in records["broken"]


def made_up(*, autotuned=False):
    """Return records like the study's for two shapes, with invented times."""
    rows = []
    for i, (kind, ours) in enumerate((("aligned", 1.0), ("unaligned", 4.0))):
        for name, ms in ((study.EAGER, 1.5), ("_addmm_activation", 1.2), (study.OURS, ours)):
            for graph in (False, True):
                rows.append({"shape": kind, "M": 64 + i, "N": 64, "K": 64, "dtype": "float16", "graph": graph})
                rows[-1] |= {"name": name, "median_ms": ms, "autotuned": autotuned, "plan": "p", "on.machine": "X"}
    return pandas.DataFrame(rows)


def test_the_ratio_is_of_the_best_baseline_of_the_pass_with_most_of_them():
    table = random_study.ratios(made_up())
    assert table["ratio"].tolist() == pytest.approx([1.2, 1.2, 0.3, 0.3]) and table["eager"][0] == pytest.approx(1.5)
    second = made_up(autotuned=True)
    second.loc[second["name"] == "_addmm_activation", "median_ms"] = 0.9
    both = random_study.ratios(pandas.concat([made_up(), second[second["M"] == 64]]))
    assert both["ratio"].tolist() == pytest.approx([0.9, 0.9, 0.3, 0.3])
    assert random_study.RANDOM.worst(table, 1).splitlines()[1].split()[1] == "unaligned"
    assert "0.300" in random_study.summary(table)


def test_the_scatter_plot_has_a_point_a_shape_and_kind():
    drawn = random_study.draw_random(made_up())
    assert [len(c.get_offsets()) for ax in drawn.axes for c in ax.collections] == [1, 1] * 2
    assert "slower at 1" in drawn.get_suptitle() and len(figures.png(drawn)) < 100_000
    with pytest.raises(ValueError, match="on a GPU"):
        random_study.draw_random(made_up()[lambda rows: rows["name"] == study.EAGER])
