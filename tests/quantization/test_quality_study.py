"""Test the study of quality on a small model: its cases, its records, and that it goes on where it ended."""

import pytest
import torch

from labs_helpers.measure import results
from labs_helpers.quantization import quality_study
from labs_helpers.quantization.byte_model import save_byte_model
from labs_helpers.quantization.quality_study import AWARE, AWQ, CONTINUED, SCHEMES, SMOOTHQUANT, cases, main, table
from labs_helpers.transformer import SIZES, Transformer


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """(DataFrame, options) of a study with one seed."""
    folder = tmp_path_factory.mktemp("quality")
    torch.manual_seed(0)
    model = Transformer(SIZES["tiny"])
    for block in model.blocks:  # as of training: a fresh model's layers add next to nothing to its outputs
        block.mlp.down.weight.data.mul_(20)
        block.attention.wo.weight.data.mul_(20)
    save_byte_model(folder / "bytes.pt", model, {})
    options = ["--weights", str(folder / "bytes.pt"), "--out", str(folder / "quality.jsonl")]
    options += "--windows 8 --length 16 --seeds 1 --steps 2".split()
    main(options)
    return results.load(folder / "quality.jsonl"), options, folder


def test_every_case_has_a_record(rows):
    found = rows[0]
    assert len(found) == len(cases(1, trained=True)) == len(table(found))
    assert {SMOOTHQUANT, AWQ, AWARE, CONTINUED} < set(found["method"]) and set(SCHEMES) < set(found["scheme"])


def test_weights_as_they_are_cost_nothing_and_have_two_bytes(rows):
    found = rows[0]
    plain = found[(found["scheme"] == "bf16") & found["steps"].isna()]
    parameters = sum(parameter.numel() for parameter in Transformer(SIZES["tiny"]).parameters())
    assert set(plain["resident_bytes"]) == {2 * parameters} and set(plain["difference"]) == {0}
    assert (found[found["scheme"] != "bf16"]["difference"] != 0).all()


def test_outliers_are_larger_and_smoothing_makes_up_for_them(rows):
    found = rows[0].set_index(["model", "scheme", "method"])["difference"]
    ratio = rows[0].groupby("model")["outlier_ratio"].min()
    assert ratio["with outliers"] > 8 * ratio["as trained"]
    with_and_without = [found[model, "w8a8", SMOOTHQUANT] for model in ("as trained", "with outliers")]
    assert with_and_without[0] == pytest.approx(with_and_without[1], abs=1e-6)


def test_fewer_bits_are_fewer_bytes(rows):
    size = rows[0].groupby("scheme")["resident_bytes"].first()
    assert size["int4-128"] < size["int4-64"] < size["int4-32"] < size["int8"] < size["bf16"]


def test_the_same_command_measures_nothing_twice(rows, monkeypatch):
    found, options, folder = rows
    monkeypatch.setattr(quality_study.Bench, "measure", lambda self, case: pytest.fail(f"{case} again"))
    main(options)
    assert len(results.load(folder / "quality.jsonl")) == len(found)
