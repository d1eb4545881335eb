"""Test a race in turns: the order of measurements, the rank that counts, and its record."""

import gc
from collections import Counter

import pytest
import torch

from labs_helpers.measure import race as racing
from labs_helpers.measure.race import (
    clock,
    clock_phases,
    collected_between,
    disagreements,
    in_turns,
    race,
    record_of,
    timings,
)
from labs_helpers.measure.timing import turns

CPU = torch.device("cpu")


class Pair:
    """This rank, and one that takes twice as long."""

    def __init__(self):
        self.waits = 0

    def gather(self, value):
        return [value, {name: timings([2e-3 * each["step"].median_ms]) for name, each in value.items()}]

    def barrier(self):
        self.waits += 1


def test_every_round_has_each_candidate_once_and_begins_with_another():
    order = list(turns("abc", 4))
    assert [name for _, name in order] == list("abcbcacababc")
    assert Counter(order) == {(number, name): 1 for number in range(4) for name in "abc"}
    assert list(turns((), 3)) == []


def test_a_sample_is_taken_per_turn_and_what_lies_between_is_not_measured():
    calls = []
    found = in_turns({"a": lambda: 1, "b": lambda: 2}, 3, between=lambda: calls.append("between"))
    assert found == {"a": [1] * 3, "b": [2] * 3} and len(calls) == 6


def test_the_slowest_rank_counts():
    found = race(Pair(), {"a": iter([1.0, 3.0, 2.0]).__next__, "b": iter([0.1] * 3).__next__}, 3)
    assert found["a"]["step_ms"] == pytest.approx(4000) and found["b"]["step_ms"] == pytest.approx(200)
    assert set(found["a"]) == {"step_ms", "step_p20_ms", "step_p80_ms", "runs"}


def test_phases_add_up_by_name_and_all_ranks_begin_together(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0, 11.0])  # start, the first mark, and one behind each phase, the end
    monkeypatch.setattr(racing, "perf_counter", now.__next__)
    ranks = Pair()
    phases = [("forward", int), ("backward", int), ("forward", int)]
    assert clock_phases(lambda: phases, CPU, ranks) == {"step": 11, "forward": 6, "backward": 3} and ranks.waits == 1
    assert record_of(timings([{"step": 2.0, "forward": 1.0}]))["forward_ms"] == 1000


def test_the_value_comes_with_its_time():
    value, seconds = clock(lambda: 5, CPU)
    assert value == 5 and seconds >= 0


def test_cycles_are_collected_where_it_is_asked_for_alone():
    with collected_between() as collect:
        assert not gc.isenabled() and collect() is not None
    assert gc.isenabled()


def test_on_a_gpu_phases_lie_between_events_in_its_queue(monkeypatch):
    clocked = [0.0]

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = clocked[0]

        def elapsed_time(self, end):
            return (end.at - self.at) * 1e3

    def takes(seconds):
        clocked[0] += seconds

    waits = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(clocked[0]))
    phases = [("forward", lambda: takes(1)), ("backward", lambda: takes(2))]
    taken = clock_phases(lambda: phases, torch.device("cuda", 0))
    assert (taken["forward"], taken["backward"]) == (1, 2) and waits == [0, 3]


def test_who_does_not_compute_the_same_is_named():
    assert disagreements({"a": 2.0, "b": 2.00001, "c": 2.1, "d": float("nan")}, 1e-4) == {
        "c": "2.1 instead of 2, the first one's",
        "d": "nan instead of 2, the first one's",
    }
    assert disagreements({}, 1e-4) == {}
