"""Test that lab 05's figures show the counted values and a prediction, and that its kernels agree."""

from types import SimpleNamespace

import numpy as np
import pandas
import torch

from labs_helpers.attention.lab05 import checks as check
from labs_helpers.attention.lab05 import exercises, pictures, two_kernels_or_one
from labs_helpers.attention.lab05.checks.bounds import gradient_bounds
from labs_helpers.attention.lab05.checks.cases import Case
from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients
from labs_helpers.course.prediction import predict
from labs_helpers.course.visits import visits
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import Timing


def walked_by_keys(k, q, *rest, **options):
    return exercises.key_value_gradients(q, k, *rest, **options)


def test_the_walks_are_those_counted_from_the_kernels():
    given, _ = Case("", 64, 96, causal=True).operands(H=1)
    blocks = {"causal": True, "BLOCK_M": 32, "BLOCK_N": 32}
    rest = [given[name] for name in ("v", "do", "lse", "delta", "scale")]
    across = visits(exercises.query_gradient, given["q"], given["k"], *rest, **blocks)
    down = visits(walked_by_keys, given["k"], given["q"], *rest, **blocks)
    assert (across > 0).sum(1).tolist() == [64, 96] and (down > 0).sum(1).tolist() == [64, 64, 32]
    fig = pictures.draw_walks(across, down, 32)
    arrows = [[text.arrow_patch for text in ax.texts] for ax in fig.axes]
    assert [len(patches) for patches in arrows] == [2, 3]


def test_the_last_tile_carries_the_prediction():
    for prediction, lines in ((None, 1), (predict("programs", 5), 2)):
        fig = pictures.draw_writers([1, 2, 3], prediction)
        assert [bar.get_height() for bar in fig.axes[0].patches] == [1, 2, 3] and len(fig.axes[0].lines) == lines


def test_the_ratio_is_backward_over_forward():
    rows = pandas.DataFrame(
        [
            {
                "kind": "speed",
                "graph": False,
                "dtype": "float16",
                "name": "flash_attention",
                "direction": direction,
                "L": L,
                "D": 128,
                "causal": True,
                "median_ms": ms * L,
                "p20_ms": 0.9 * ms * L,
                "p80_ms": 1.1 * ms * L,
            }
            for direction, ms in (("forward", 1.0), ("backward", 2.75))
            for L in (1024, 4096)
        ]
    )
    fig = pictures.draw_ratio(rows, predict("ratio", 4))
    assert np.allclose(fig.axes[0].lines[0].get_ydata(), 2.75)
    assert fig.axes[0].lines[-1].get_ydata() == [4]


def test_the_one_kernel_version_gives_the_same_gradients_and_another_dq_in_another_order():
    given, exact = Case("", 96, 130, causal=True).operands(H=1)
    one, other = (
        one_kernel_gradients(**given, causal=True, BLOCK_M=32, BLOCK_N=32, backwards=backwards)
        for backwards in (False, True)
    )
    bounds = gradient_bounds(exact, torch.float32)
    for name, value in zip(("dq", "dk", "dv"), one, strict=True):
        assert ((value.cpu().double() - getattr(exact, name)).abs() <= bounds[name]).all()
    assert torch.equal(one[1], other[1]) and torch.equal(one[2], other[2]) and not torch.equal(one[0], other[0])


def test_two_kernels_are_timed_beside_one(monkeypatch, capsys):
    row = {"kind": "two or one", "name": "one kernel", "median_ms": 2.0, "p20_ms": 2.0, "p80_ms": 2.1}
    rows = pandas.DataFrame([row | {"differing": 3.0, "elements": 4096.0}])
    monkeypatch.setattr(two_kernels_or_one, "this_machine", lambda: SimpleNamespace(interpreted=True))
    monkeypatch.setattr(two_kernels_or_one.STUDY.__class__, "load", lambda self: rows)
    query_gradient = check.query_gradient.reference
    two_kernels_or_one.two_kernels_or_one(query_gradient, exercises.key_value_gradients)
    assert "2.000 ms (spread 5%); two runs differ in 3 of 4,096" in capsys.readouterr().out
    here = SimpleNamespace(interpreted=False, device=this_machine().device, dtype=torch.float32)
    monkeypatch.setattr(two_kernels_or_one, "this_machine", lambda: here)
    monkeypatch.setattr(
        two_kernels_or_one,
        "measure_rounds",
        lambda ways, rounds: {name: Timing.of([len(way())]) for name, way in ways.items()},
    )
    two_kernels_or_one.two_kernels_or_one(query_gradient, exercises.key_value_gradients, L=64)
    told = capsys.readouterr().out
    assert "two kernels (reference)" in told and "one kernel" in told and "0 of 32,768" in told
