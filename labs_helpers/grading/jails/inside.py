"""The program in the jail: it judges the answers of one submission, one after the other, each in separate processes.

It reads messages from stdin, each a line with the message's number of bytes, followed by these bytes of JSON. The first
one is {"seconds": 60, "imports": […]}; every further one is a job:

    {"token": …, "exercise": "02/3", "keys": […], "name": …, "imports": […], "before": […], "source": …, "asked": […],
     "sources": {…}}

It writes one line to stdout as soon as a job is done:

    token {"status": "right" | "wrong" | "failed" | "crashed" | "memory" | "timeout" | "refused", "lines": […],
           "message": …, "hidden": {"status": …, "values": [[…], …], "raised": …}}

lines: of the check's cases that passed. hidden: the answer's results for the hidden inputs of each key; null if no case
passed. sources: the text of the checks and references, which the jail hides (given_sources.py).

This process does not read jobs. It forks the nursery of the answers' processes (far/answer.py), and then a judge, which
reads the job. So neither tokens and keys nor checks and references are ever in an answer's memory. An answer's output
is discarded.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

from labs_helpers.course.own_memory import made_anew
from labs_helpers.grading.far.answer import Nursery, keep_to_itself
from labs_helpers.grading.far.judge import made_far
from labs_helpers.grading.hidden import run_of
from labs_helpers.grading.hidden.answer_values import values
from labs_helpers.grading.jails.ending import Ending, ending
from labs_helpers.grading.jails.given_sources import import_from
from labs_helpers.grading.jails.memory import with_memory
from labs_helpers.grading.jails.own_memory import keep_to_own_memory
from labs_helpers.grading.judged import judged, result

MOST = 2**21  # the most bytes that a judge may report about one job
LOOK_S = 0.1  # seconds between checks that a judge's process is alive
IMPORT_S = 20.0  # seconds that a judge may take to import a lab's checks on a busy machine
# Imported once for all judges. Of the course these are what all checks use; no check and no reference is among them.
OF_CHECKS = (
    "cProfile", "cloudpickle", "symtable", "torch.profiler",
    "labs_helpers.course.exercise", "labs_helpers.course.verdict",
)  # fmt: skip


def main() -> None:
    end = ending()
    if end is None:  # all processes in reach would be ended after each answer
        sys.exit("this runs in a jail alone: python -m labs_helpers.grading makes one")
    sys.path[:] = [folder for folder in sys.path if folder]  # nothing is imported from where answers may write
    keep_to_itself()
    given, jobs, told = json.loads(_message(0)), os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    _import_all(given["imports"], OF_CHECKS + ("torch._dynamo",) * given["optimizers"])
    while line := _judged_in_a_process(jobs, given["seconds"], told, end):
        os.write(told, line.encode())
    os._exit(0)


def _message(descriptor: int) -> bytes:
    """Return the next message and not a byte more; b"" at the end."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"\n", b""):
        line += byte
    left, parts = int(line or b"0"), list[bytes]()
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _import_all(lines: Iterable[str], modules: Iterable[str]) -> None:
    """Import everything that the processes of answers and judges would import, except a student's code."""
    from labs_helpers.measure.machine import prepare_triton
    from labs_helpers.measure.quick_interpreter import quicken

    prepare_triton()
    for line in lines:
        with contextlib.suppress(ImportError):  # which contains no reference
            exec(line, {})
    if "torch" in sys.modules:
        for name in modules:
            importlib.import_module(name)
    if "triton" in sys.modules:
        with contextlib.suppress(ImportError):  # as Triton itself does at the first launch
            importlib.import_module("triton.experimental.gluon")
        quicken()
        keep_to_own_memory()
    gc.collect()
    gc.freeze()  # a collection in a forked process would copy the pages of all that was imported


def _judged_in_a_process(jobs: int, seconds: float, told: int, end: Ending) -> str:
    """Return the line of the next job, or '' if there is none. All processes that it started have ended."""
    nursery = Nursery()
    reads, writes = os.pipe()
    at_a_loss = json.dumps(with_memory(result("crashed", "MemoryError"))).encode()  # made while there is memory for it
    judge = os.fork()
    if judge == 0:
        os.close(told)
        os.close(reads)
        with contextlib.suppress(BaseException):
            try:
                for line in _lines(jobs, nursery, seconds):
                    _write(writes, line.encode()[:MOST] + b"\n")
            except MemoryError:
                _write(writes, at_a_loss + b"\n")
        os._exit(0)  # regardless of threads and exit handlers
    os.close(writes)
    parts, late = _parts(reads, judge, seconds)
    os.close(reads)
    end(judge)
    if not parts:
        return ""
    token, *found = parts
    if late:
        other = result("timeout", f"did not end within {seconds:g} s")
    else:
        other = result("crashed", "the process that ran it ended without a word")
    check, hidden, *_ = [*map(_read, found), other, other]
    return f"{token.decode()} {json.dumps(check | {'hidden': hidden})}\n"


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return result("crashed", "it gives more than can be told")


def _parts(reads: int, judge: int, seconds: float) -> tuple[list[bytes], bool]:
    """Return (the lines that a judge writes, whether it took too long for the next one). Each may take `seconds`."""
    content, deadline, ended = b"", monotonic() + IMPORT_S + seconds, False
    while not ended and len(content) <= 2 * MOST and (left := deadline - monotonic()) > 0:
        gone = os.waitid(os.P_PID, judge, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        if select.select([reads], [], [], min(left, LOOK_S))[0]:
            part = os.read(reads, 2**16)
            content, ended = content + part, not part
            if b"\n" in part:
                deadline = monotonic() + seconds
        else:
            ended = gone  # a process that it left behind may hold the pipe open
    return content.split(b"\n")[:-1], not ended


def _lines(jobs: int, nursery: Nursery, seconds: float) -> Iterator[str]:
    """Yield a job's token, the check's verdict, and the results for the hidden inputs."""
    job = json.loads(_message(jobs) or "null")
    if job is None:
        return
    import_from(job.pop("sources"))
    run_of(job["exercise"])
    from labs_helpers.labs import LABS

    lab = next(lab for lab in LABS if lab.number == job["exercise"].partition("/")[0])
    lab.exercises()
    yield str(job["token"])
    job["nursery"] = nursery
    check = judged(lab, job, seconds, made_far)
    yield json.dumps(with_memory(check))
    hidden = _hidden(job, seconds) if check["status"] == "right" or check["lines"] else None
    yield json.dumps(hidden and with_memory(hidden))


def _hidden(job: dict[str, Any], seconds: float) -> dict[str, Any]:
    found = []
    for key in job["keys"]:  # each in another process
        function, again = made_far(job, {}, seconds)
        with made_anew(function, again):
            found.append(values(job | {"key": key}, function))
        if function.lost:
            return result("crashed", function.lost)
    raised = next((one["raised"] for one in found if "raised" in one), "")
    return result("right") | {"values": [one.get("values") for one in found], "raised": raised}


if __name__ == "__main__":
    main()
