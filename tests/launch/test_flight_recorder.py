"""The flight recorder's entries in words, and what does not fit between ranks."""

import pickle

import pytest

from labs_helpers.launch.flight_recorder import Collective, as_text, compare, from_text, recorded


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


def entry(name, group="0", number=1, is_p2p=False):
    frames = [{"name": "step", "line": 3, "filename": "/home/me/train.py"}]
    return {
        "process_group": (group, "default"), "collective_seq_id": number, "profiling_name": name, "is_p2p": is_p2p,
        "input_sizes": [[1000]], "frames": frames,
    }  # fmt: skip


def test_the_recorder_of_nccl_is_read_beside_that_of_other_backends(monkeypatch):
    from torch._C import _distributed_c10d

    told = {"_dump_nccl_trace": [entry("nccl:all_reduce"), entry("nccl:send", is_p2p=True)]}
    told["_dump_fr_trace"] = [entry("gloo:barrier", group="1")]
    for name, entries in told.items():
        dumped = pickle.dumps({"version": "2.10", "entries": entries})
        monkeypatch.setattr(_distributed_c10d, name, lambda dumped=dumped: dumped, raising=False)
    place = "step, line 3 of train.py"
    gloo = Collective("1", 1, "gloo:barrier", ((1000,),), place)
    assert recorded() == [Collective("0", 1, "nccl:all_reduce", ((1000,),), place), gloo]
    monkeypatch.delattr(_distributed_c10d, "_dump_nccl_trace")
    assert recorded() == [gloo]


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
