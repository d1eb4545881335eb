"""Runs in the jail: answers of one submission, each in a process of its own, and the course's own check of each.

Reads lines from stdin, {"lab": "02", "seconds": 60, "checks": true, "imports": […]} and then a job each, and writes a
line to stdout as soon as a job is done:

    {"token": …, "exercise": "02/3", "key": …, "name": …, "imports": […], "before": […], "source": …, "far": true,
     "earlier": […], "asked": […]}
    token {"status": "right" | "wrong" | "failed" | "crashed" | "memory" | "timeout" | "refused", "lines": […],
           "message": …, "values": […]}

lines: of the check's cases that passed. "checks": false asks for values, what the hidden inputs (hidden/) of each job's
key gave, and for nothing else: no check and no reference is imported then. Only then has a job a key. far: the answer
runs in a process of its own (grading/far/), which was made before its job was read, so that neither token nor key is in
its memory. What an answer prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import sys
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

from labs_helpers.course.own_memory import made_anew
from labs_helpers.grading.far.answer import Nursery, keep_to_itself
from labs_helpers.grading.far.judge import made_far
from labs_helpers.grading.hidden import run_of
from labs_helpers.grading.hidden.answer_values import values
from labs_helpers.grading.jails.ending import Ending, ending
from labs_helpers.grading.jails.memory import with_memory
from labs_helpers.grading.jails.own_memory import keep_to_own_memory
from labs_helpers.grading.jails.together import PR_SET_DUMPABLE, prctl
from labs_helpers.grading.judged import judged, made_here, result

MOST = 2**20  # bytes that a job may tell
LOOK_S = 0.1  # how often it is looked whether a job's process is still there


def main() -> None:
    end = ending()
    if end is None:  # all processes in reach would be ended after each answer
        sys.exit("this runs in a jail alone: python -m labs_helpers.grading makes one")
    sys.path[:] = [folder for folder in sys.path if folder]  # nothing is imported from where answers may write
    keep_to_itself()
    given, jobs = json.loads(_line(0)), os.dup(0)
    told = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    lab = _prepared(given["lab"], given["checks"])
    _imported(given["imports"])
    while True:
        nursery = Nursery()
        if not (line := _line(jobs)):
            end(nursery.process)
            os._exit(0)
        job = json.loads(line)
        found = _in_a_process(lab, job | {"nursery": nursery}, given["seconds"], told, end)
        os.write(told, f"{job['token']} {json.dumps(found)}\n".encode())


def _line(descriptor: int) -> bytes:
    """The next line and not a byte more, which would be in the memory of an answer's process."""
    line = bytearray()
    while byte := os.read(descriptor, 1):
        if byte == b"\n":
            break
        line += byte
    return bytes(line)


def _prepared(number: str, checks: bool) -> Any:
    """The lab, once all that its checks need is imported; None without checks."""
    from labs_helpers.labs import LABS
    from labs_helpers.measure.machine import prepare_triton
    from labs_helpers.measure.quick_interpreter import quicken

    prepare_triton()
    run_of(f"{number}/0")
    lab = next(lab for lab in LABS if lab.number == number) if checks else None
    if lab is not None:
        lab.exercises()
        loaded = [module for name, module in sys.modules.items() if name.startswith("labs_helpers.")]
        ours = [module.__file__ for module in loaded if ".grading." not in module.__name__]
        if any("torch.optim" in Path(file).read_text() for file in ours if file):
            importlib.import_module("torch._dynamo")  # as the first optimizer of each answer would, in a second
    if "triton" in sys.modules:
        quicken()
        keep_to_own_memory()
    return lab


def _imported(lines: Iterable[str]) -> None:
    """What every answer's process would import for itself: of the course's own, nothing of a student's."""
    for line in lines:
        with contextlib.suppress(ImportError):  # where no reference is
            exec(line, {})


def _in_a_process(lab: Any, job: dict[str, Any], seconds: float, told: int, end: Ending) -> dict[str, Any]:
    """What a forked process says of the job, or why it says nothing. Nothing of it is left."""
    reads, writes = os.pipe()
    at_a_loss = json.dumps(with_memory(result("crashed", "MemoryError"))).encode()  # made while there is memory for it
    child = os.fork()
    if child == 0:
        if not job["far"]:
            prctl(PR_SET_DUMPABLE, 1)
        os.close(told)
        os.close(reads)
        with contextlib.suppress(BaseException):
            try:
                content = json.dumps(with_memory(_found(lab, job, seconds))).encode()[:MOST]
            except MemoryError:
                content = at_a_loss
            while content:
                content = content[os.write(writes, content) :]
        os._exit(0)  # whatever threads and exit handlers there are
    os.close(writes)
    content, deadline, ended = b"", monotonic() + seconds, False
    while not ended and len(content) <= MOST and (left := deadline - monotonic()) > 0:
        gone = _has_ended(child)  # before it is looked whether there is more to read
        if select.select([reads], [], [], min(left, LOOK_S))[0]:
            part = os.read(reads, 2**16)
            content, ended = content + part, not part
        else:
            ended = gone  # a process that it left behind may hold the pipe open
    os.close(reads)
    end(child)
    try:
        return dict(json.loads(content))
    except ValueError:
        if not ended:
            return result("timeout", f"did not end within {seconds:g} s")
        return result("crashed", "the process that ran it ended without a word")


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def _found(lab: Any, job: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What the check says of an answer; without a lab, what the hidden inputs give."""
    made = made_far if job["far"] else made_here
    if lab is not None:
        return judged(lab, job, seconds, made)
    with contextlib.suppress(Exception):
        function, again = made(job, {}, seconds)
        with made_anew(function, again):
            return result("right") | values(job, function)
    return result("failed", "its cells do not run where the course's references are not")


if __name__ == "__main__":
    main()
