"""Students graded on the engines of a running ipyparallel cluster: `ipcluster start --profile slurm -n 8`, say.

The engines share a file system with this process: the course under its path, and what was handed in. Each makes its own
jails. One student at a time goes to an engine that is free: what an engine has is known, and when this process dies no
engine goes on with the rest of a class.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

import cloudpickle
import ipyparallel
from ipyparallel.error import EngineError, RemoteError

from labs_helpers.grading.pool import GradeOne
from labs_helpers.grading.reading.inbox import HandedIn
from labs_helpers.grading.results.gradebook import ERROR, Record

CONNECT_S = 10.0  # that the controller may take to answer
WAIT_S = 600.0  # for the first engine: a scheduler may have other jobs before it; and for another when all have died
LOOK_S = 0.5  # how often engines that have come are looked for
END_S = 10.0  # that engines may take to end what they run
TRIES = 2  # a student's, on engines that die


class NoEngines(RuntimeError):
    """Why nothing can be graded on the cluster, with what to do."""


class Unfit(RuntimeError):
    """Raised on an engine that has no jail."""


def graded_on(
    profile: str, todo: Iterable[HandedIn], grade_one: GradeOne, why_not: Callable[[], str], wait_s: float = WAIT_S
) -> Iterator[Record]:
    """Yields what `grade_one(student, over)` returns, as it comes, from the engines of the cluster of that profile.

    why_not: of the jail; an engine where it gives a reason gets no student. A student whose engine died goes to another
    once, and is then a record with the status ERROR. Closing it interrupts what still runs, as for pool.graded_here.
    NoEngines: no cluster, or `wait_s` seconds without an engine that has a jail.
    """
    run = cloudpickle.dumps((os.getcwd(), grade_one, why_not))
    client = _connected(profile)
    spread = _Spread(client, run, deque((one, TRIES) for one in todo))
    try:
        yield from spread.records(wait_s)
    finally:
        spread.interrupt()
        client.close()


def _connected(profile: str) -> Any:
    try:
        return ipyparallel.Client(profile=profile, timeout=CONNECT_S)
    except (OSError, TimeoutError) as error:
        said = str(error).strip().splitlines()
        raise NoEngines(
            f"no cluster of the profile {profile} answers; start it first: ipcluster start --profile={profile} -n 8"
            f" ({said[0] if said else type(error).__name__})"
        ) from None


@dataclass
class _Spread:
    """What waits, what each engine has, and which engines are of no use. The number beside a student: how many engines
    it may still be given to."""

    client: Any
    run: bytes
    waiting: deque[tuple[HandedIn, int]]
    running: dict[Any, tuple[int, HandedIn, int]] = field(default_factory=dict)  # result → engine, student, tries
    unfit: dict[int, str] = field(default_factory=dict)

    def records(self, wait_s: float) -> Iterator[Record]:
        used = monotonic()
        while self.waiting or self.running:
            self._hand_out()
            if self.running:
                used = monotonic()
            elif monotonic() - used > wait_s:
                raise NoEngines(f"for {wait_s:g} s there has been no engine to grade on{self._reasons()}")
            else:
                sleep(LOOK_S)
            for result in wait(self.running, timeout=LOOK_S, return_when=FIRST_COMPLETED).done:
                if record := self._taken(result, *self.running.pop(result)):
                    yield record

    def interrupt(self) -> None:
        engines = {engine for engine, *_ in self.running.values()} & set(self.client.ids)
        with suppress(Exception):  # whatever happens, this process is about to go
            if engines:
                self.client.send_signal(signal.SIGINT, targets=sorted(engines), block=False)
                wait(self.running, timeout=END_S)
        self.running.clear()

    def _hand_out(self) -> None:
        busy = {engine for engine, *_ in self.running.values()}
        for engine in self.client.ids:
            if self.waiting and engine not in busy and engine not in self.unfit:
                one, tries = self.waiting.popleft()
                result = self.client[engine].apply_async(_on_engine, self.run, cloudpickle.dumps(one))
                self.running[result] = engine, one, tries

    def _taken(self, result: Any, engine: int, one: HandedIn, tries: int) -> Record | None:
        """None where the student waits again."""
        try:
            record = cloudpickle.loads(result.result())
            assert isinstance(record, Record)
            return record
        except (EngineError, RemoteError) as error:
            kind = "EngineError" if isinstance(error, EngineError) else error.ename
            said = str(error) if isinstance(error, EngineError) else error.evalue
        if kind in ("Unfit", "ModuleNotFoundError", "ImportError"):
            self.unfit[engine] = said
            self.waiting.appendleft((one, tries))
            print(f"engine {engine} grades nobody: {said}", file=sys.stderr, flush=True)
            return None
        if kind == "EngineError" and tries > 1:
            self.waiting.appendleft((one, tries - 1))
            return None
        died = f"{TRIES} engines died while they graded this one"
        return Record(one.student, ERROR, reason=died if kind == "EngineError" else f"{kind}: {said}")

    def _reasons(self) -> str:
        return "".join(f"\n  engine {engine}: {why}" for engine, why in sorted(self.unfit.items()))


def _on_engine(run: bytes, one: bytes) -> bytes:
    """Runs on an engine; a plain function of bytes, so that only these travel."""
    import os

    import cloudpickle

    from labs_helpers.grading.cluster import Unfit

    folder, grade_one, why_not = cloudpickle.loads(run)
    os.chdir(folder)  # paths may be relative to it
    if reason := why_not():
        raise Unfit(f"{os.uname().nodename}: {reason}")
    return cloudpickle.dumps(grade_one(cloudpickle.loads(one), lambda: False))
