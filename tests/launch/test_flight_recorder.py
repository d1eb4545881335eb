"""The flight recorder's entries in words, and what does not fit between ranks."""

import pickle
from functools import partial

from torch._C import _distributed_c10d

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


def entry(number, name, p2p=False):
    return {
        "time_created_ns": number, "profiling_name": name, "collective_seq_id": number, "is_p2p": p2p,
        "process_group": ("0", "default_pg"), "input_sizes": [[1000]],
    }  # fmt: skip


def test_both_recorders_are_read(monkeypatch):
    """PyTorch 2.11 keeps NCCL's collectives apart; another version may return an entry twice."""
    second = entry(2, "gloo:barrier")
    recorders = {"_dump_fr_trace": [second], "_dump_nccl_trace": [entry(1, SUM[0]), second, entry(3, "", p2p=True)]}
    for name, kept in recorders.items():
        monkeypatch.setattr(_distributed_c10d, name, partial(pickle.dumps, {"entries": kept}), raising=False)
    assert [(one.number, one.name) for one in recorded()] == [(1, "nccl:all_reduce"), (2, "gloo:barrier")]


def test_a_recorder_that_is_off(monkeypatch):
    monkeypatch.setattr(_distributed_c10d, "_dump_fr_trace", partial(pickle.dumps, {"version": "2.10"}))
    assert recorded() == []
