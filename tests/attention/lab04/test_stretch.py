"""Test the stretches of labs 04 and 05: ours is right, its programs are equal, and the figure adds the student's."""

import pytest
import torch

from labs_helpers.attention.lab04 import exercises, stretch
from labs_helpers.attention.lab05 import stretch as backward_stretch
from labs_helpers.attention.lab05.checks.bounds import gradient_bounds
from labs_helpers.attention.lab05.checks.cases import Case
from labs_helpers.attention.lab05.split_kernel import split_gradients
from labs_helpers.course.verdict import numbers


@pytest.mark.parametrize(("Lq", "Lk"), [(48, 48), (20, 40), (40, 20)])
def test_two_tiles_in_a_program_are_causal_attention(Lq, Lk):
    q, k, v = (numbers(1, 2, n, 16, seed=seed) for seed, n in enumerate((Lq, Lk, Lk)))
    for ours, right in zip(
        stretch.paired_attention(q, k, v, 0.3, 16, 16), exercises.causal_attention(q, k, v, 0.3, 16, 16), strict=True
    ):
        torch.testing.assert_close(ours, right)


def test_equal_programs_are_drawn_and_a_wrong_result_is_told():
    fig = stretch.beside_ours(exercises.causal_attention, L=64, BLOCK=16)
    assert fig.axes[0].get_title("left") == "Tiles per program: 1–4 in exercise 5, 5 in ours, 1–4 in yours"
    with pytest.raises(ValueError, match="yours: O is off by"):
        stretch.beside_ours(lambda q, k, v, scale, **blocks: (q, None), L=32, BLOCK=16)


def test_copies_of_dq_give_the_gradients_and_the_same_bits_in_another_order():
    given, exact = Case("", 70, 90, causal=True).operands(H=1)
    found, other = (
        split_gradients(**given, causal=True, BLOCK_M=32, BLOCK_N=32, backwards=backwards)
        for backwards in (False, True)
    )
    bounds = gradient_bounds(exact, torch.float32)
    for name, value, again in zip(("dq", "dk", "dv"), found, other, strict=True):
        assert ((value.cpu().double() - getattr(exact, name)).abs() <= bounds[name]).all() and torch.equal(value, again)


def test_what_each_way_moves_is_drawn(capsys):
    fig = backward_stretch.beside_ours(lambda **given: None, L=64)
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["two kernels", "one kernel", "ours"]
    assert capsys.readouterr().out.count("same bits of dQ") == 3
