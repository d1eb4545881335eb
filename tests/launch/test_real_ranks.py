"""Test the ranks that tests share: several tasks, one after another, and new ranks after a failure."""

import os
import re

import pytest

from labs_helpers.launch.failure import RanksFailed
from labs_helpers.launch.patience import limit_text
from tests import real_ranks


def test_ranks_stay_for_the_next_work_and_a_failure_ends_them():
    def who(comm, *told):
        return comm.rank, comm.size, os.getpid(), told

    def fails_on_one(comm):
        if comm.rank == 1:
            raise ValueError("no such case")
        comm.recv(source=1)

    first, again = (real_ranks.run(who, size, "this", timeout=100) for size in (4, 2))
    assert [(rank, size, told) for rank, size, _, told in first] == [(rank, 4, ("this",)) for rank in range(4)]
    assert again == [(rank, 2, pid, ("this",)) for rank, _, pid, _ in first[:2]]
    with pytest.raises(RanksFailed, match="ValueError: no such case"):
        real_ranks.run(fails_on_one, 2, timeout=100)
    others = real_ranks.run(who, 2, timeout=100)
    assert [rank for rank, *_ in others] == [0, 1] and {pid for *_, pid, _ in others}.isdisjoint(
        pid for *_, pid, _ in first
    )


def test_work_that_does_not_end_is_ended():
    with pytest.raises(TimeoutError, match=re.escape(f"2 of 4 ranks did not end within {limit_text(0.5)}")):
        real_ranks.run(lambda comm: comm.recv(source=comm.rank), 2, timeout=0.5)
