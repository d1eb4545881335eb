"""A pure function's cases: a mistake is named where it gives what was found in all of them."""

import pytest

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge

CASES = [Case("empty", ([],), 0, "empty: 0"), Case("one", ([3],), 3), Case("three", ([1, 5, 2],), 8, "three: 8")]
MISTAKES = [("the largest, not the sum", max), ("the first counts alone", lambda xs: xs[0] if xs else 0)]


def said(answer):
    with pytest.raises(Wrong) as wrong:
        list(judge(answer, answer, CASES, MISTAKES, told=lambda case, got: (str(got), str(case.right))))
    return str(wrong.value)


def test_a_right_answer_gets_a_line_for_each_case_that_has_one():
    assert list(judge(sum, sum, CASES, MISTAKES, told=lambda *_: ("", ""))) == ["empty: 0", "three: 8"]


def test_a_mistake_is_named_where_it_gives_all_that_was_found():
    assert said(lambda xs: xs[0] if xs else 0).endswith(
        "three: got 1, expected 8\nLikely cause: the first counts alone"
    )
    assert "Likely cause" not in said(lambda xs: max(xs, default=0))  # max itself fails where the list is empty


def test_an_error_is_told_after_the_cases_before_it():
    assert said(lambda xs: xs[1] if xs else 0).startswith("one: IndexError")
    assert said(lambda xs: xs[1] if xs else 7).startswith("empty: got 7, expected 0")


def test_changed_arguments_are_wrong():
    assert "must not change its arguments" in said(lambda xs: xs.append(1) or 0)
