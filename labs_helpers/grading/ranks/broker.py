"""Ranks of an answer in jails of their own: what they send goes through here, to the course's practice ranks.

The function that `ranks_in_jails` gives is called as the answer would be, on practice ranks of this process: it hands
its arguments to its rank's jail, makes the calls that come back with the practice communicator, which routes, counts
and names deadlocks, and puts what the arguments have become into them. So the hidden inputs' runs take it as they take
a function, and a rank sees its own arguments and what it is sent, and nothing else.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import labs_helpers
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.hidden.answer_values import values
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, in_jail
from labs_helpers.grading.ranks.pipe_comm import packed, unpacked
from labs_helpers.grading.reading.lab_imports import used_by
from labs_helpers.grading.reading.submission import Answer

STARTER = "from labs_helpers.grading.ranks.pipe_comm import main; main()"
START_S = 30.0  # that Python may take to begin in a jail on a busy machine
MOST = 2**18  # bytes of a line
POLL_S = 0.1  # between two looks at whether the run is over


ON_RANKS = frozenset(("06/1", "06/2", "06/3", "06/4", "06/5", "06/8"))  # exercises whose ranks send messages alone
MOST_RANKS = 9  # in their hidden inputs


def values_on_ranks(answer: Answer, imports: Iterable[str], seed: int, limits: Limits = LIMITS) -> dict[str, Any]:
    """What an answer to one of ON_RANKS gives for the hidden inputs, as `hidden_values.values` has it."""
    with ranks_in_jails(answer, imports, MOST_RANKS, limits) as function:
        return values({"exercise": answer.shipped.id, "key": key_of(seed, answer.shipped.id)}, function)


class RankLost(RuntimeError):
    """A rank's process is gone, says nothing any more, or says what it cannot."""


class _Jailed:
    """The process of one rank."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True, env={},
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self.writes, self.reads, self.rest = self.process.stdin.fileno(), self.process.stdout.fileno(), b""
        os.set_blocking(self.writes, False)

    def tell(self, message: Any, until: float) -> None:
        line = f"{json.dumps(message)}\n".encode()
        while line:
            if monotonic() > until:
                raise RankLost("it reads nothing")
            if select.select([], [self.writes], [], POLL_S)[1]:
                try:
                    line = line[os.write(self.writes, line) :]
                except OSError as error:
                    raise RankLost(str(error)) from None

    def read(self, until: float) -> dict[str, Any]:
        while b"\n" not in self.rest:
            if monotonic() > until or len(self.rest) > MOST:
                raise RankLost("no line")
            if select.select([self.reads], [], [], POLL_S)[0]:
                part = os.read(self.reads, MOST)
                if not part:
                    raise RankLost("its process ended")
                self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError, RecursionError):
            raise RankLost("no message") from None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def ranks_in_jails(
    answer: Answer, imports: Iterable[str], size: int, limits: Limits = LIMITS
) -> Iterator[Callable[..., None]]:
    """A function of (comm, *arguments) that runs the answer on up to `size` ranks, each in a jail. arguments: NumPy
    arrays, and NumPy's functions. imports: the lab's (`imports_of`). No reference is in the jails."""
    course = Path(labs_helpers.__file__).parent
    command = in_jail(
        [sys.executable, "-c", STARTER], [course], limits, hidden=sorted(course.glob("*/lab*/exercises"))
    )  # fmt: skip
    job = {"name": answer.shipped.name, "imports": used_by(answer, imports), "before": list(answer.before),
           "source": answer.source}  # fmt: skip
    ranks: list[_Jailed] = []
    try:
        ranks += (_Jailed(command) for _ in range(size))
        for rank in ranks:
            rank.tell(job, monotonic() + START_S)
        for rank in ranks:
            rank.read(monotonic() + START_S)
        end = monotonic() + limits.seconds

        def remote(comm: Any, *args: Any) -> None:
            _call(ranks[comm.rank], comm, args, end)

        yield remote
    finally:
        for rank in ranks:
            rank.end()


def _call(jailed: _Jailed, comm: Any, args: tuple[Any, ...], end: float) -> None:
    """One call of the answer on one rank."""
    given = [packed(arg) if isinstance(arg, np.ndarray) else {"op": arg.__name__} for arg in args]
    jailed.tell({"rank": comm.rank, "size": comm.size, "args": given}, end)
    under_way: list[tuple[Any, Any]] = []  # requests, with the buffers that are received into
    while "call" in (message := jailed.read(end)):
        jailed.tell(_made(comm, message, under_way), end)
    if "raised" in message:
        raise RuntimeError(f"rank {comm.rank} raised {message['raised']!r:.60}")
    for arg, left in zip(args, message.get("args", ()), strict=True):
        if isinstance(arg, np.ndarray):
            found = unpacked(left)
            if found.dtype != arg.dtype or found.shape != arg.shape:
                raise RankLost("another array")
            arg[...] = found


def _made(comm: Any, message: dict[str, Any], under_way: list[tuple[Any, Any]]) -> Any:
    """Makes a call of a rank's, and returns what it is told."""
    call = message["call"]
    if call == "Barrier":
        return comm.Barrier()
    if call == "Isend":
        under_way.append((comm.Isend(unpacked(message["buf"]), message["dest"], message["tag"]), None))
        return len(under_way) - 1
    if call == "Irecv":
        buffer = unpacked(message["buf"])
        under_way.append((comm.Irecv(buffer, message["source"], message["tag"]), buffer))
        return len(under_way) - 1
    if call == "Test":
        return under_way[message["request"]][0].Test()
    if call == "Waitall":
        waited = [under_way[number] for number in message["requests"]]
        waited[0][0].Waitall([request for request, _ in waited])
        return [None if buffer is None else packed(buffer) for _, buffer in waited]
    raise ValueError("no such call")
