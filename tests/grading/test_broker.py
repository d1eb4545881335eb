"""Ranks in jails of their own: what they send is routed, a deadlock is named, and no rank holds up or deceives it."""

import os
import subprocess
import time

import numpy as np
import pytest

from labs_helpers.grading.hidden import generator, run_of
from labs_helpers.grading.hidden.values import difference, read, written
from labs_helpers.grading.jails.bubblewrap import Limits, why_not
from labs_helpers.grading.ranks.broker import ON_RANKS, ranks_in_jails, values_on_ranks
from labs_helpers.grading.reading.submission import Answer, Shipped
from labs_helpers.practice import Deadlock, RankFailed, practice
from tests.collectives.lab06.test_planted_bugs import TestLab06 as lab06
from tests.planted import planted

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

SHIFT = """
def shift(comm, send, recv):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if len(send) > 2:  # both wait for the other to receive
        comm.Send(send, right)
    comm.Sendrecv(send, dest=right, recvbuf=recv, source=left)
"""
HOSTILE = {
    "ends": "os._exit(0)",
    "never ends": "while True: pass",
    "floods": "while True: os.write(pipe.writes.fileno(), b'x' * 4096)",
    "does not read": "while True: comm._pipe.tell({'call': 'Barrier'})",
    "no message": "pipe.tell([1, 2])",
    "no such call": "pipe.tell({'call': '__class__'})",
    "an attribute": "pipe.tell({'call': '_baton'})",
    "no array": "pipe.tell({'call': 'Isend', 'buf': {'dtype': 'object', 'shape': [1], 'bytes': ''}})",
    "a large array": "pipe.tell({'call': 'Isend', 'buf': {'dtype': 'int8', 'shape': [2**62], 'bytes': ''}})",
    "another rank": "pipe.tell({'call': 'Isend', 'buf': {}, 'dest': 1000, 'tag': 0})",
    "another's request": "pipe.tell({'call': 'Waitall', 'requests': [5]})",
    "other arguments": "pipe.tell({'args': [{}, {'dtype': 'int8', 'shape': [0], 'bytes': ''}]})",
    "nothing back": "pipe.tell({'args': []})",
    "deep": "pipe.writes.write('[' * 10**5 + '\\n'); pipe.writes.flush()",
}


def answer(source, name="shift", exercise="06/1"):
    return Answer(Shipped(exercise, name, "", "", 0), source)


def shifted(remote, size, n):
    sends = [np.arange(n) + 100 * rank for rank in range(size)]
    recvs = [np.zeros(n, int) for _ in range(size)]
    ran = practice(lambda comm: remote(comm, sends[comm.rank], recvs[comm.rank]), size, timeout=100)
    return ran, all(np.array_equal(recv, np.arange(n) + 100 * ((r - 1) % size)) for r, recv in enumerate(recvs))


def test_messages_are_routed_and_counted_and_a_deadlock_is_named():
    with ranks_in_jails(answer(SHIFT), [], 2) as remote:
        ran, right = shifted(remote, 2, 2)
        assert right and ran.messages_sent == [1, 1]
        with pytest.raises(Deadlock, match="waits to send to 1"):
            shifted(remote, 2, 3)


@pytest.mark.soak
@pytest.mark.parametrize("does", HOSTILE)
def test_a_hostile_rank_ends_the_run_alone(does):
    lines = f"import os, time\n{SHIFT}    pipe = comm._pipe\n    {HOSTILE[does]}\n    time.sleep(30)\n"
    began = time.monotonic()
    with ranks_in_jails(answer(lines), [], 2, Limits(seconds=4)) as remote:
        with pytest.raises(RankFailed):
            shifted(remote, 2, 2)
    assert time.monotonic() - began < 30
    mine = subprocess.run(["ps", "-o", "args", "--ppid", str(os.getpid())], capture_output=True, text=True, timeout=10)
    assert "pipe_comm" not in mine.stdout


@pytest.mark.soak
@pytest.mark.parametrize("exercise", sorted(ON_RANKS))
def test_right_answers_give_what_the_reference_gives_and_bugs_do_not(exercise, tmp_path):
    name = run_of(exercise).__name__
    reference = lab06.REFERENCES[name]
    expected = [read(written(value)) for value in run_of(exercise)(reference, generator(3, exercise))]

    def agrees(changes):
        planted(reference, tmp_path, *changes)
        source = max(tmp_path.glob("planted_*.py"), key=lambda path: path.stat().st_mtime_ns).read_text()
        lines = [line for line in source.splitlines() if "lab06.exercises" not in line]
        found = values_on_ranks(answer("\n".join(lines), name, exercise), [], 3)
        return "values" in found and not difference(read(found["values"]), expected)

    assert [changes for one, changes in lab06.DIFFERENT if one == name and not agrees(changes)] == []
    bugs = [changes for one, _, changes, _ in lab06.BUGS if one == name][:4]
    assert not all(agrees(changes) for changes in bugs)
