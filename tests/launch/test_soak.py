"""Repeat deadlocks and killed ranks many times, under Open MPI and, in a separate environment, under MPICH."""

import os
import sys
import time
from pathlib import Path

import pytest

from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks
from labs_helpers.launch.process import run
from tests.launch.deadlocks import DEADLOCKS, expire_on_arrival, killed, left

ROOT = Path(__file__).parents[2]
MPICH = ROOT / ".venv-mpich/bin/python"
TIMES = 21  # 2 to 8 ranks with each of three deadlocks
pytestmark = pytest.mark.soak


@pytest.mark.parametrize("time_number", range(TIMES))
def test_deadlock(time_number, monkeypatch, tmp_path):
    ranks, deadlock = 2 + time_number % 7, DEADLOCKS[time_number % 3]
    expire_on_arrival(monkeypatch, tmp_path, ranks)
    with pytest.raises(RanksTimeout) as caught:
        run_on_ranks(deadlock, ranks, tmp_path, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == [] and sorted(caught.value.stuck) == list(range(ranks))


@pytest.mark.parametrize("time_number", range(TIMES))
def test_killed_rank(time_number, tmp_path):
    ranks = 2 + time_number % 7
    victim = time_number % ranks
    with pytest.raises(RanksFailed) as caught:
        run_on_ranks(killed, ranks, tmp_path, victim, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == [] and victim in caught.value.silent


@pytest.mark.parametrize("seconds", [1, 3])
def test_everything_is_gone_within_5_s_of_the_limit(seconds, tmp_path):
    begin = time.monotonic()
    with pytest.raises(RanksTimeout):
        run_on_ranks(DEADLOCKS[2], 8, tmp_path, timeout=seconds, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == [] and time.monotonic() - begin < seconds + 5


@pytest.mark.skipif(not MPICH.exists(), reason="no .venv-mpich: make mpich")
def test_under_mpich():
    told = run([MPICH, ROOT / "tests/launch/mpich_smoke.py"], timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert told.endswith("all is well under MPICH\n"), sys.stderr.write(told)
