"""Tables, lists of records, and causes that have to fit in all cases."""

import copy

import numpy as np
import pytest
import torch

from labs_helpers.course.verdict import (
    Wrong,
    expect_is_number,
    expect_table,
    expect_unchanged,
    is_number,
    likely,
    likely_in_all,
    one_thread,
)
from labs_helpers.course.verdict.causes import still_possible

RIGHT = {"mm": (2, 7.5), "add": (1, 0.25)}


def said(function, *arguments) -> str:
    with pytest.raises(Wrong) as caught:
        function("case", *arguments)
    return str(caught.value)


def test_a_right_table_is_taken_in_any_order_and_of_any_numbers():
    answer = {"add": [np.int64(1), 0.25 + 1e-12], "mm": (2.0, np.float64(7.5))}
    assert expect_table("case", answer, RIGHT, ("calls", "µs")) is answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([("mm", 2, 7.5)], r"expected a dict {name: \(calls, µs\)}"),
        ({"mm": 2, "add": 1}, "has 2 for 'mm'"),
        ({"mm": (2, 7.5, 1), "add": (1, 0.25)}, "has .2, 7.5, 1. for 'mm'"),
        ({"mm": (2, "7.5"), "add": (1, 0.25)}, "expected {name"),
        ({"mm": (2, 7.5), "sub": (1, 0.25)}, "missing: 'add'; too many: 'sub'"),
        ({"mm": (2, 7.6), "add": (1, 0.25)}, "mm: µs is 7.6, expected 7.5"),
        ({"mm": (2, float("nan")), "add": (1, 0.25)}, "mm: µs is nan"),
    ],
)
def test_a_wrong_table_is_refused(answer, message):
    with pytest.raises(Wrong, match=message):
        expect_table("case", answer, RIGHT, ("calls", "µs"))


def test_a_tables_causes_are_those_of_names_and_of_each_column():
    names = [("kernels are named", {"gemm": (), "add": ()})]
    calls = [("each is counted once", {"mm": (1, 0), "add": (1, 0)}), ("doubled", {"mm": (1, 0), "add": (2, 0)})]
    us = [("in ms", {name: (0, us / 1e3) for name, (_, us) in RIGHT.items()})]
    table = (RIGHT, ("calls", "µs"), [names, calls, us])
    assert "cause: kernels are named" in said(expect_table, {"gemm": (2, 7.5), "add": (1, 0.25)}, *table)
    assert "cause: each is counted once" in said(expect_table, {"mm": (1, 7.5), "add": (1, 0.25)}, *table)
    assert "cause: in ms" in said(expect_table, {"mm": (2, 0.0075), "add": (1, 0.00025)}, *table)
    assert "cause" not in said(expect_table, {"mm": (2, 0.0075), "add": (1, 0.25)}, *table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda events: events.pop(), "a list of 3 events and left 2 in it.*\\n.*events were added or removed"),
        (lambda events: events.sort(key=lambda e: e["ts"]), "reordered the list.*\\n.*sorted"),
        (
            lambda events: events[1].update(end=5),
            "changed the event b, which it got: its 'end' was missing",
        ),
        (lambda events: events[1]["args"].clear(), "its 'args' was {'id': 7} and is {}"),
        (lambda events: events[2].pop("ts"), "its 'ts' was 2 and is missing"),
    ],
)
def test_what_was_given_and_is_changed_is_found(change, message):
    before = [{"name": "c", "ts": 3}, {"name": "b", "ts": 1, "args": {"id": 7}}, {"name": "a", "ts": 2}]
    given = copy.deepcopy(before)
    expect_unchanged("case", given, before, "event")
    change(given)
    with pytest.raises(Wrong, match=message):
        expect_unchanged("case", given, before, "event")


def test_causes_in_all_cases_fit_each_of_them():
    def causes(n):
        yield "doubled", 2 * n
        yield "squared", n * n
        yield "two more", n + 2

    assert likely_in_all([causes(2)], [4]) == ()  # three that fit: a guess
    assert likely_in_all(map(causes, (2, 3)), [4, 9]) == ("squared",)
    assert likely_in_all(map(causes, (2, 3)), [4, 7]) == ()
    assert likely_in_all(map(causes, (2, 3)), [4.1, 6.1], lambda a, b: abs(a - b) < 0.2) == ("doubled",)
    with pytest.raises(ValueError):
        likely_in_all([causes(2), [("doubled", 4)]], [4, 4])


def test_a_cause_that_a_passed_case_rules_out_is_not_named():
    def causes(x):
        yield "a square", x * x
        yield "twice", 2 * x
        yield "twice", 2 * x + 1
        if x > 2:
            yield "plus a half of it", x + x // 2

    def right(x):
        return {2: 4, 3: 9, 4: 8}[x]

    def named(found, x, *passed):
        earlier = [(causes(one), lambda answer, one=one: answer == right(one)) for one in passed]
        return likely(still_possible(causes(x), earlier), lambda answer: answer == found)

    assert named(16, 4) == ("a square",) and named(6, 4) == ("plus a half of it",) and named(9, 4) == ("twice",)
    assert named(16, 4, 2) == named(16, 4, 2, 3) == ("a square",)  # right in both
    assert named(9, 4, 2) == ("twice",)  # one of its two candidates is right there
    assert named(9, 4, 2, 3) == ()
    assert named(6, 4, 2) == ("plus a half of it",) and named(6, 4, 2, 3) == ()  # the first case does not have it


def test_nothing_of_a_cause_is_worked_out_before_it_is_asked_for():
    def causes():
        raise AssertionError
        yield

    still_possible(causes(), [(causes(), bool)])


@pytest.mark.parametrize("answer, right", [(1, True), (np.float32(0.5), True), (True, False), ("1", False)])
def test_numbers(answer, right):
    assert is_number(answer) == right
    if right:
        expect_is_number("case", "share", answer)
    else:
        assert "share is" in said(expect_is_number, "share", answer)


def test_one_thread_gives_the_others_back():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == before
