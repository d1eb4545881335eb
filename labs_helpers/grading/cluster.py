"""Grade students on the engines of a running ipyparallel cluster, started for instance by `ipcluster start --profile
slurm -n 8`.

The engines share a file system with this process, with the course and the submissions under the same paths. Each engine
makes its own jails. If an engine dies, ipyparallel's scheduler gives its student to another engine once. The scheduler
never holds more students than there are engines, so that no engine continues with the class when this process dies.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from itertools import islice
from typing import Any

import cloudpickle
import ipyparallel
from ipyparallel.error import EngineError, RemoteError

from labs_helpers.grading.pool import GradeOne
from labs_helpers.grading.reading.inbox import HandedIn
from labs_helpers.grading.results.gradebook import ERROR, Record

CONNECT_S = 10.0  # seconds for the controller to answer
WAIT_S = 600.0  # seconds for a scheduler to start the first engine
LOOK_S = 10.0  # seconds between searches for new and dead engines
END_S = 10.0  # seconds for engines to end what they run


class NoEngines(RuntimeError):
    """Nothing can be graded on the cluster; the message says why and what to do."""


def graded_on(
    profile: str, todo: Iterable[HandedIn], grade_one: GradeOne, why_not: Callable[[], str], wait_s: float = WAIT_S
) -> Iterator[Record]:
    """Yield the results of `grade_one(student, over)` on the engines of the profile's cluster, as they arrive.

    why_not: returns the reason why an engine has no jail; such an engine grades nobody. A student during whose grading
    two engines died has the status ERROR. Closing the iterator interrupts what still runs, as for pool.graded_here.
    Raises NoEngines if there is no cluster, if no engine has a jail within `wait_s` seconds, or if none is left.
    """
    waiting, running, reasons = iter(todo), dict[Any, HandedIn](), dict[int, str]()
    with _connected(profile) as client:
        with suppress(TimeoutError):
            client.wait_for_engines(1, timeout=wait_s, interactive=False)
        view, job = client.load_balanced_view(), cloudpickle.dumps((os.getcwd(), grade_one))
        try:
            while True:
                view.targets = _fit(client, why_not, reasons)
                for one in islice(waiting, max(0, len(view.targets) - len(running))):
                    with view.temp_flags(retries=1):
                        running[view.apply_async(_on_engine, job, cloudpickle.dumps(one))] = one
                if not running:
                    return
                for result in wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED).done:
                    yield _record(running.pop(result), result)
        finally:
            with suppress(Exception):  # this process is about to end anyway
                if running:
                    client.send_signal(signal.SIGINT, targets=client.ids, block=False)
                    wait(running, timeout=END_S)


def _connected(profile: str) -> Any:
    try:
        return ipyparallel.Client(profile=profile, timeout=CONNECT_S)
    except (OSError, TimeoutError) as error:
        said = str(error).strip().splitlines()
        raise NoEngines(
            f"no cluster of the profile {profile} answers; start it first: ipcluster start --profile={profile} -n 8"
            f" ({said[0] if said else type(error).__name__})"
        ) from None


def _fit(client: Any, why_not: Callable[[], str], reasons: dict[int, str]) -> list[int]:
    """Return the numbers of the engines with a jail. reasons: engine → why it has none; this adds new engines."""
    new = [engine for engine in client.ids if engine not in reasons]
    asked = {engine: client[engine].apply_async(_why_not, cloudpickle.dumps(why_not)) for engine in new}
    for engine, result in asked.items():
        if reason := _told(result):
            print(f"engine {engine} grades nobody: {reason}", file=sys.stderr, flush=True)
        reasons[engine] = reason
    if fit := [engine for engine in client.ids if not reasons[engine]]:
        return fit
    whys = "".join(f"\n  engine {engine}: {why}" for engine, why in sorted(reasons.items()) if why)
    raise NoEngines(f"there is no engine to grade on{whys}")


def _told(result: Any) -> str:
    try:
        return str(result.result())
    except (EngineError, RemoteError) as error:  # such as a ModuleNotFoundError if the course is not installed
        return str(error).strip().splitlines()[-1]


def _record(one: HandedIn, result: Any) -> Record:
    try:
        record = cloudpickle.loads(result.result())
        assert isinstance(record, Record)
        return record
    except (EngineError, RemoteError) as error:
        died = getattr(error, "ename", "EngineError") == "EngineError"
        reason = "two engines died while they graded this one" if died else str(error)
        return Record(one.student, ERROR, reason=reason)


def _why_not(job: bytes) -> str:
    """Run `why_not` on an engine. It is a plain function of bytes, so that nothing else travels."""
    import os

    import cloudpickle

    reason = cloudpickle.loads(job)()
    return f"{os.uname().nodename}: {reason}" if reason else ""


def _on_engine(job: bytes, one: bytes) -> bytes:
    import os

    import cloudpickle

    from labs_helpers.grading.results.gradebook import ERROR, Record

    folder, grade_one = cloudpickle.loads(job)
    os.chdir(folder)  # paths may be relative to it
    given = cloudpickle.loads(one)
    try:
        return cloudpickle.dumps(grade_one(given, lambda: False))
    except (Exception, KeyboardInterrupt) as error:  # which the scheduler would give to another engine
        return cloudpickle.dumps(Record(given.student, ERROR, reason=f"{type(error).__name__}: {error}"))
