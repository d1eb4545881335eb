"""Test whether a partly right answer to hidden inputs is recognized, and not mistaken for chance."""

import torch

from labs_helpers.grading.hidden.agreement import any_right

X, Y = torch.arange(12.0), torch.arange(12.0) + 1


def test_a_tensor_two_large_numbers_or_several_small_ones_are_proof():
    assert any_right([X], [X, Y], [Y, X]) and not any_right([Y], [X, Y], [Y, X])
    assert any_right([[4096, 1], [9999, 1]], [[4096, 2], [9999, 3]], [[7, 2], [7, 3]])
    assert not any_right([4096, 4096], [4096, 4096, 9999], [7, 7, 7])  # the same again
    assert any_right([5, 6, 7], [5, 6, 7], [1, 2, 3]) and not any_right([5, 5, 5], [5, 6, 7], [1, 2, 3])
    assert any_right([{"a": 0.3, "b": 0.7}], [{"a": 0.3, "b": 0.7, "c": 1}], [{"a": 0.1, "b": 0.2}])


def test_of_a_short_tensor_each_element_counts():
    expected, other = torch.tensor([0.25, 0.7, 0.3]), torch.tensor([0.1, 0.2, 0.9])
    assert any_right([torch.tensor([0.0, 0.7, 0.3])], [expected], [other])
    assert not any_right([torch.tensor([0.25, 0.1, 0.1])], [expected], [other])


def test_what_every_input_gives_and_truth_values_are_none():
    big = [X, 10_007, 10_009]
    assert not any_right([big, True, "float32"], [big, True, "float32", Y], [big, False, "float32", X])
    assert not any_right([], [X], [Y]) and not any_right([None, [], {}], [X, X, X], [Y, Y, Y])


def test_where_all_can_be_guessed_nothing_is_held_against_an_answer():
    assert any_right([], [True, [False, 0]], [False, [False, 0]])
