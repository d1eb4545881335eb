"""Compare the experiments on precision with NumPy, with other dtypes' rounding, and with results computed by hand."""

import numpy as np
import pytest
import torch

from labs_helpers.transformer import SIZES
from labs_helpers.transformer.counts import parameters
from labs_helpers.transformer.lab01 import pictures, precision


@pytest.fixture(scope="module")
def gradients():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for each other where tests run in parallel
    yield precision.tiny_gradients(steps=6, batch=16, length=64)
    torch.set_num_threads(before)


def test_sums_stop_where_the_spacing_is_twice_the_numbers():
    table = precision.sums(5_000)
    assert table.loc["float16", "one by one"] == 2048 and table.loc["bfloat16", "one by one"] == 256
    assert abs(table.loc["float32", "error"]) < 1e-5
    assert (table["torch.sum's error"].abs() < 2**-8).all()


def test_float16_sums_are_numpys():
    numbers = torch.rand(3_000, generator=torch.Generator().manual_seed(3), dtype=torch.float64).numpy()
    expected = np.add.accumulate(numbers.astype(np.float16))[-1]
    assert precision.sums(3_000, seed=3).loc["float16", "one by one"] == expected


def test_updates_are_lost_in_bfloat16_alone():
    table = precision.lost_updates()
    assert len(table) == 101 and (table["bfloat16"] == 1).all()
    assert table["float32"].to_numpy() == pytest.approx(1 - 0.001 * np.arange(101), abs=1e-5)
    assert abs(table["bfloat16 of a float32 master"] - table["float32"]).max() <= 2**-9
    assert set(table["float16"].diff().dropna()) == {-(2.0**-10)}  # 0.001 is 2.05 of its steps below 1


def test_a_larger_update_arrives():
    assert precision.lost_updates(10, -0.01)["bfloat16"].iloc[-1] < 0.95


def test_gradients_are_those_of_all_parameters_and_matrices(gradients):
    tiny = SIZES["tiny"]
    wide = tiny.layers * (4 * tiny.width + 2 * tiny.hidden + tiny.width) + tiny.vocabulary
    assert gradients["parameters"].numel() == sum(parameters(tiny).values())
    assert gradients["activations"].numel() == 16 * 64 * wide
    again = precision.tiny_gradients(steps=6, batch=16, length=64)
    assert all(torch.equal(gradients[name], again[name]) for name in gradients)


def test_many_gradients_of_activations_vanish_and_scaled_ones_do_not(gradients):
    table = precision.in_float16(gradients)
    assert table.loc[("activations", 1), "flushed to 0"] > 0.02
    assert table.loc[("activations", 2**16), ["flushed to 0", "infinite"]].max() < 0.005
    assert table.loc[("parameters", 1), "flushed to 0"] < table.loc[("activations", 1), "flushed to 0"]


def test_shares_in_float16_by_hand():
    gradient = torch.tensor([0.0, 2.0**-26, -(2.0**-24), 2.0**-20, 1.0, -1e5, 3e4, 2.0**-14])
    table = precision.in_float16({"these": gradient}, (1, 4))
    assert table.loc[("these", 1)].tolist() == pytest.approx([1 / 7, 2 / 7, 1 / 7])
    assert table.loc[("these", 4)].tolist() == pytest.approx([0, 3 / 7, 2 / 7])


def test_exponents_by_hand():
    share = precision.exponents(torch.tensor([0.0, 1.0, -1.5, 2.0, 3.99, 2.0**-130, -0.75]))
    assert share.to_dict() == pytest.approx({-130: 1 / 6, -1: 1 / 6, 0: 2 / 6, 1: 2 / 6})


def test_dtypes():
    table = precision.dtypes()
    assert set(table["float32"]) == {"float32"}
    assert set(table["bfloat16"].drop("loss")) == {"bfloat16"} and table.loc["loss", "bfloat16"] == "float32"
    low = {"q, k, v", "attention", "MLP", "logits"}
    assert {name: dtype for name, dtype in table["autocast to bfloat16"].items() if dtype == "bfloat16"}.keys() == low


def test_rounding_to_ten_bits_is_float16s_and_to_seven_bfloat16s():
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    x = torch.cat([x, torch.tensor([0.0, -0.0, 1 + 2**-11, 1 + 3 * 2**-11, 2 - 2**-12, -(1 + 2**-8)])])
    normal = x[x.abs() > 2.0**-13]
    assert torch.equal(precision.rounded(normal), normal.half().float())
    assert torch.equal(precision.rounded(x * 1e-30, 7), (x * 1e-30).bfloat16().float())


def test_a_tf32_product_is_as_exact_as_its_ten_bits():
    table = precision.product_errors(128)
    errors = table["mean error"]
    assert errors["TF32"] == pytest.approx(errors["float16"], rel=0.01)
    assert errors["bfloat16"] / errors["TF32"] == pytest.approx(2**3, rel=0.15)
    assert errors["float32"] < errors["TF32"] / 100
    assert table.loc["float32", "from float32"] == 0
    assert table.loc["TF32", "from float32"] == pytest.approx(errors["TF32"], rel=0.01)


def test_the_figure_of_gradients_says_how_many_vanish(gradients):
    fig = pictures.draw_gradients(gradients["activations"], 2.0**16)
    share = precision.in_float16(gradients, (1,)).loc[("activations", 1), "flushed to 0"]
    (ax,) = fig.axes
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert labels[0] == f"as they are: {share:.1%} become 0" and labels[1].startswith("times 65,536: ")
    assert {"flushed to 0", "fewer bits", "all 11 bits", "inf"} <= {text.get_text() for text in ax.texts}


def test_the_figure_of_lost_updates_has_the_tables_curves():
    table = precision.lost_updates(20)
    (ax,) = pictures.draw_lost_updates(table).axes
    assert {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()} == {
        n: list(v) for n, v in table.items()
    }
