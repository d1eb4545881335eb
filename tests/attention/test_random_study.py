"""Test the study at random shapes: the shapes, the rejection of wrong results, resuming and the report."""

import dataclasses
import itertools
from collections import Counter

import pandas
import pytest
import torch
from matplotlib import pyplot as plt

from labs_helpers.attention import random_study, study
from labs_helpers.attention.baselines import CUDNN, FLASH, OURS
from labs_helpers.attention.random_shapes import KINDS, Shape, random_shapes
from labs_helpers.measure import results

SELF = Shape("off the blocks", 1, 4, 2, 30, 30, 64, True)
DECODE = Shape("decode", 1, 4, 1, 3, 70, 64, True)


def test_shapes_are_the_same_for_a_seed_and_keep_to_their_bounds():
    shapes = random_shapes(100, 7)
    assert shapes == random_shapes(100, 7) and shapes[:20] == random_shapes(20, 7) and shapes != random_shapes(100, 8)
    counted = Counter(shape.kind for shape in shapes)
    assert set(counted) == set(KINDS) and min(counted.values()) >= 33
    for s in shapes:
        assert s.H % s.Hkv == 0 and s.D in (64, 96, 128)
        assert (1 <= s.Lq <= 16 and 1024 <= s.Lk <= 131072) if s.kind == "decode" else (256 <= s.Lq == s.Lk <= 16384)
        assert s.bytes() < 4e9 and (s.kind != "whole blocks" or s.Lq % 128 == 0)
    assert all(s.Lk <= 131072 // 32 and s.flops("forward") < 1e9 for s in random_shapes(100, 7, small=True))


@pytest.mark.parametrize("Lq, Lk", [(5, 5), (3, 8), (8, 3), (1, 9)])
def test_operations_are_those_of_the_pairs_that_are_seen(Lq, Lk):
    shape = Shape("decode", 2, 4, 2, Lq, Lk, 64, True)
    assert shape.pairs == int(torch.ones(Lq, Lk).tril(Lk - Lq).sum())
    assert shape.flops("backward") == 2.5 * shape.flops("forward") == 10 * 2 * 4 * shape.pairs * 64
    assert shape._replace(causal=False).pairs == Lq * Lk


@pytest.mark.parametrize("shape", [SELF, DECODE], ids=str)
def test_everyone_is_compared_with_float64(shape, monkeypatch):
    records = random_study.measure_shape(shape, torch.float16, rounds=1, ms=1)
    ours = [record for record in records if record["name"] == OURS]
    directions = ["forward"] if shape.kind == "decode" else ["forward", "backward"]
    assert [record["direction"] for record in ours] == directions
    assert all(0 < record["relative_error"] < 5e-3 for record in ours)
    assert ours[0]["plan"].startswith("decode" if shape.kind == "decode" else "portable")
    wrong = {OURS: lambda q, k, v: q * k.mean() * v.mean(), "fails": lambda q, k, v: q @ k}
    monkeypatch.setattr(random_study, "ways", lambda shape: wrong)
    records = random_study.measure_shape(shape, torch.float16, rounds=1, ms=1)
    assert [record["name"] for record in records] == [OURS, "fails"]
    assert records[0]["error"].startswith("ValueError: wrong") and "median_ms" not in records[0]


def test_sdpa_sees_what_we_see_in_a_decode_of_several_queries():
    records = random_study.measure_shape(DECODE, torch.float16, rounds=1, ms=1)
    assert [r for r in records if r["name"] == FLASH and "median_ms" in r and r["relative_error"] < 5e-3]


def test_it_goes_on_where_it_was_ended(tmp_path):
    measured = []

    def instead(shape, dtype):
        measured.append(shape)
        known = {"study": random_study.STUDY, "dtype": "float16", "name": OURS, "direction": "forward", "graph": False}
        return [known | shape._asdict() | {"shape": shape.kind, "median_ms": 1.0}]

    instead = dataclasses.replace(random_study.RANDOM, measure=instead)
    out = tmp_path / "random.jsonl"
    instead.run(3, 7, torch.float16, out)
    instead.run(5, 7, torch.float16, out)
    assert measured == random_shapes(5, 7, small=True) or measured == random_shapes(5, 7)
    instead.run(8, 7, torch.float16, out, seconds=0)
    assert len(measured) == 5
    assert len(results.load(out)) == 5


def invented() -> pandas.DataFrame:
    """Return records like those of a run on a GPU, with made-up numbers."""
    rows = []
    for index, (shape, graph) in enumerate(itertools.product(random_shapes(30, 7), (False, True))):
        for direction in ("forward",) if shape.kind == "decode" else ("forward", "backward"):
            for name, factor in ((OURS, 1.0), (FLASH, 1.6), (CUDNN, 0.8 + index / 60)):
                rows.append(
                    {"study": "attention-random", "shape": shape.kind, "dtype": "float16", "plan": "hopper kernel"}
                    | shape._asdict()
                    | {"bytes": shape.bytes(), "flops": shape.flops(direction), "direction": direction}
                    | {"name": name, "graph": graph, "median_ms": factor * shape.flops(direction) / 4e11}
                )
    return pandas.DataFrame(rows)


def test_the_report_shows_the_best_baseline_over_ours_and_the_worst_first():
    frame = invented()
    table = random_study.ratios(frame)
    assert len(table) == len(frame) / 3 and table["ratio"].between(0.79, 1.61).all()
    assert set(table["best"]) <= {FLASH, CUDNN}
    assert random_study.RANDOM.worst(table, 10).splitlines()[1].split().count("0.80") == 1
    assert len(random_study.RANDOM.worst(table, 10).splitlines()) == 11
    assert "geometric mean" in random_study.summary(table)
    fig = random_study.draw_random(frame)
    assert len(fig.axes) == 2 and "of 50 passes" in fig._suptitle.get_text()
    plt.close(fig)


def test_without_a_time_of_ours_it_says_so():
    with pytest.raises(ValueError, match="times it on a GPU"):
        random_study.ratios(invented().query("name != @OURS"))


def test_the_command_reaches_it(tmp_path, monkeypatch, capsys):
    same = dataclasses.replace(random_study.RANDOM, measure=lambda *given, **options: [{"name": OURS}])
    monkeypatch.setattr(random_study, "RANDOM", same)
    study.main(["--random", "2", "--seed", "3", "--out", str(tmp_path / "x.jsonl")])
    assert "2 records appended" in capsys.readouterr().out
