"""The flight recorder's entries in words, and what does not fit between ranks."""

import pytest

from labs_helpers.launch.flight_recorder import Collective, as_text, compare, from_text


def begun(*names, group="0"):
    return [
        Collective(group, number, name, ((size,),), "step, line 3 of train.py")
        for number, (name, size) in enumerate(names, 1)
    ]


SUM, BARRIER = ("nccl:all_reduce", 1000), ("nccl:barrier", 0)


def test_ranks_that_agree():
    assert compare({0: begun(SUM, SUM), 1: begun(SUM, SUM)}) == []
    assert compare({0: []}) == []


def test_a_rank_that_skipped_a_collective():
    (said,) = compare({0: begun(SUM, SUM, SUM), 1: begun(SUM, SUM), 2: begun(SUM, SUM)})
    assert said == "ranks 1, 2 never began nccl:all_reduce number 3, 1,000 elements, in step, line 3 of train.py"


def test_ranks_that_began_different_collectives():
    said, behind = compare({0: begun(SUM, BARRIER, SUM), 1: begun(SUM, SUM)})
    assert said.startswith("rank 0 began nccl:barrier number 2, 0 elements") and "rank 1 began nccl:all_reduce" in said
    assert behind.startswith("rank 1 never began nccl:all_reduce number 3")


def test_each_group_counts_for_itself():
    both = begun(SUM) + begun(SUM, SUM, group="1")
    assert compare({0: both, 1: both[:-1]}) == ["rank 1 never began " + str(both[-1])]


def test_entries_survive_as_text():
    assert from_text(as_text(begun(SUM, BARRIER))) == begun(SUM, BARRIER)


@pytest.mark.parametrize(
    ("older", "name"), [("2.11.0", "TORCH_NCCL_TRACE_BUFFER_SIZE"), ("2.13.1", "TORCH_FR_BUFFER_SIZE")]
)
def test_the_variable_of_each_version(older, name, monkeypatch):
    import torch

    from labs_helpers.launch import flight_recorder

    monkeypatch.setattr(torch, "__version__", older)
    environment = {}
    monkeypatch.setattr(flight_recorder.os, "environ", environment)
    flight_recorder.switch_on()
    assert environment == {name: "2000"}
