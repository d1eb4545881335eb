"""One comparison for all labs: trees of arrays, exact or with a bound, with a cause only where it alone fits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.tree_causes import fewer_bits, moved, nearly, not_finite, scaled
from labs_helpers.course.verdict.trees import Comparison, exact, leaves, rounded

RANKS = [torch.tensor([1.0, 2.0, 4.0]), torch.tensor([8.0, 16.0, 32.0])]


def said(comparison, found, right, causes=lambda: (), case="a case"):
    with pytest.raises(Wrong) as wrong:
        comparison.expect(case, found, right, causes)
    return str(wrong.value)


@given(st.recursive(st.integers(-9, 9), lambda tree: st.lists(tree, max_size=3) | st.dictionaries(st.text(), tree)))
def test_a_tree_is_itself_and_nothing_else(tree):
    comparison = Comparison("{0}")
    comparison.expect("a case", tree, tree)
    for path, _ in leaves(tree) if not isinstance(tree, int) else ():
        changed = _with(tree, path, 99)
        with pytest.raises(Wrong, match="expected"):
            comparison.expect("a case", changed, tree)


def _with(tree, path, value):
    if not path:
        return value
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    made = {key: _with(branch, path[1:], value) if key == path[0] else branch for key, branch in items}
    return made if isinstance(tree, dict) else list(made.values())


def test_the_first_difference_is_named_with_its_place_and_the_other_ranks():
    found = [RANKS[0], RANKS[1] + torch.tensor([0.0, 0.0, 1.0])]
    told = said(Comparison("rank {0}'s out", advice="look at {where}"), found, RANKS)
    assert told.splitlines()[0] == "a case: rank 1's out, element 2 (1 of 3 are off):"
    assert "got 33, expected 32" in told and "One thing to try: look at rank 1's out" in told
    told = said(Comparison("rank {0}'s out"), [one + 1 for one in RANKS], RANKS)
    assert "rank 0's out, element 0 (3 of 3 are off); so is rank 1's out" in told


def test_dicts_shapes_missing_leaves_and_none():
    right = [{"w": torch.ones(2, 3), "b": None}]
    name = Comparison("rank {0}: {1}.grad")
    name.expect("a case", right, right)
    assert "rank 0: w.grad:\n  got shape (3, 2), expected shape (2, 3)" in said(
        name, [{"w": torch.ones(3, 2), "b": None}], right
    )
    assert "rank 0: b.grad:\n  got shape (1,), expected None" in said(
        name, [{"w": torch.ones(2, 3), "b": torch.ones(1)}], right
    )
    assert "rank 0: b.grad is missing" in said(name, [{"w": torch.ones(2, 3)}], right)
    assert "rank 0: c.grad is too many" in said(name, [{**right[0], "c": torch.ones(1)}], right)


def test_a_cause_is_named_where_it_alone_fits_on_every_rank_and_was_not_ruled_out():
    def causes():
        yield "doubled", [2 * one for one in RANKS]
        yield "rank 0's on all", lambda: [RANKS[0], RANKS[0]]
        yield "right", RANKS

    comparison = Comparison("rank {0}'s out", bound=rounded(8), slack=1e-4)
    assert "Likely cause: doubled" in said(comparison, [2 * one for one in RANKS], RANKS, causes)
    assert "Likely cause: rank 0's on all" in said(comparison, [RANKS[0]] * 2, RANKS, causes)
    assert "Likely cause" not in said(comparison, [RANKS[0], 2 * RANKS[1]], RANKS, causes)
    comparison.expect("first", RANKS, RANKS, causes)
    assert "Likely cause" not in said(comparison, [2 * one for one in RANKS], RANKS, causes)


def test_nothing_is_worked_out_for_a_right_answer_but_what_later_cases_need():
    made = []
    comparison = Comparison("it")
    comparison.expect("a case", 3, 3, lambda: [("four", lambda: made.append(1) or 4)])
    assert made == []


def test_bounds_are_exact_by_dtype_or_a_tree():
    ones = torch.ones(3, dtype=torch.bfloat16)
    Comparison("x", bound=rounded(2)).expect("a case", ones * (1 + 2**-7), ones)
    assert "expected" in said(Comparison("x", bound=rounded(2)), ones.float() * (1 + 2**-7), ones.float())
    big = np.array([2**60 + 1])
    assert "1152921504606846976, expected 1152921504606846977" in said(Comparison("x", bound=exact), big - 1, big)
    bounds = [torch.tensor([0.1, 0.0])]
    tree = Comparison("{0}", bound=bounds, why="one rounding")
    tree.expect("a case", [torch.tensor([1.05, 1.0])], [torch.ones(2)])
    assert "error 0.15, allowed 0.1 (one rounding)" in said(tree, [torch.tensor([1.15, 1.0])], [torch.ones(2)])
    whole = [torch.ones(3)]  # a candidate of another shape, in whose place no bound stands
    assert "Likely cause: the whole" in said(tree, whole, [torch.ones(2)], lambda: [("the whole", whole)])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_like_nothing_but_itself(bad):
    comparison = Comparison("x", bound=rounded(1e6), slack=0.5)
    odd = torch.tensor([1.0, bad])
    comparison.expect("a case", odd, odd)
    assert "element 1 (1 of 2 are off)" in said(comparison, odd, torch.ones(2), lambda: [("too near", torch.ones(2))])


def test_one_factor_for_all_is_told_and_other_errors_are_not():
    comparison = Comparison("rank {0}", otherwise=(scaled,))
    assert "every number is 3 times the right value" in said(comparison, [3 * one for one in RANKS], RANKS)
    assert "times the right" not in said(comparison, [3 * RANKS[0], RANKS[1]], RANKS)


def test_a_rounding_to_fewer_bits_is_told_where_all_that_is_wrong_is_near():
    comparison, exact_one = Comparison("rank {0}", otherwise=(fewer_bits,)), torch.tensor([1.0, 1 / 3, 2**24 + 2.0])
    for dtype in (torch.bfloat16, torch.float16):
        right = [RANKS[0], exact_one if dtype == torch.bfloat16 else exact_one[:2]]
        assert "fewer bits than its dtype" in said(comparison, [right[0], right[1].to(dtype).float()], right)
    counted = [torch.tensor(2**24 + 1)]
    assert "fewer bits" in said(comparison, [counted[0].float().long()], counted)
    assert "fewer bits" not in said(comparison, [RANKS[0], 1.01 * exact_one], [RANKS[0], exact_one])
    assert "fewer bits" not in said(comparison, [RANKS[0][:2], exact_one], RANKS)


def test_numbers_that_are_right_to_some_digits_are_told_with_the_sentence_that_is_given():
    comparison = Comparison("rank {0}", otherwise=(not_finite("it overflows"), nearly("something small is added")))
    assert "something small is added" in said(comparison, [RANKS[0] + 0.01, RANKS[1]], RANKS)
    assert "something small" not in said(comparison, [RANKS[0] + 0.1, RANKS[1]], RANKS)
    assert "something small" not in said(comparison, [torch.tensor(1.01)], [torch.tensor(1.0)])
    assert "something small" not in said(comparison, [RANKS[0][:2], RANKS[1][:2]], RANKS)
    assert "it overflows" in said(comparison, [RANKS[0] / 0, RANKS[1]], RANKS)


def test_the_right_elements_in_another_shape_or_order_are_told():
    comparison = Comparison("rank {0}", otherwise=(moved,))
    assert "only a reshape is missing" in said(comparison, [one.reshape(3, 1) for one in RANKS], RANKS)
    assert "in the wrong order" in said(comparison, [RANKS[0].flip(0), RANKS[1]], RANKS)
    assert "in the wrong order" not in said(comparison, RANKS[::-1], RANKS)
