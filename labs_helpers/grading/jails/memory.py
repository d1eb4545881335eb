"""The memory limit: read from an option, and recognised where an answer ran into it."""

from __future__ import annotations

import re
import resource
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

MEMORY = "memory"
LEAST = 2**30  # Python, torch and Triton do not begin below some 700 MiB of addresses
_UNITS = {"M": 2**20, "G": 2**30}
# What is said where an allocation fails, after `TYPE: ` or in the words of a check: Python, NumPy, Triton's interpreter
# (of its InterpreterError only the cause is named), then PyTorch's allocator and small blocks in C++, then the kernel's
# word for it, which mmap, fork and files pass on, and that of together.py for a whole jail.
_SAID = re.compile(
    r"\bMemoryError\b|can't allocate memory: you tried to|std::bad_alloc|Cannot allocate memory|together need more than"
)
# A process that holds this share of what it may have was ended by its limit, if it says nothing plainer.
_MOST = 0.9


def size(text: str) -> int:
    """Bytes of '2G', '1.5G' or '2048M', for an option. argparse.ArgumentTypeError says what is wrong."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise ArgumentTypeError(f"a memory limit is a number with M or G, such as 2G or 1500M, not {text!r}")
    count = int(float(found[1]) * _UNITS[found[2].upper()])
    if count < LEAST:
        raise ArgumentTypeError(f"{text} is too little: Python, torch and Triton need 1G before an answer begins")
    return count


def status_of(status: str, message: str, full: bool = False) -> str:
    """MEMORY where an answer with this status and message ran out of it, else its status.

    full: whether its process held about all that it may have. That alone decides where the message names no cause: the
    process died, or the check itself failed, for want of memory to say what is wrong.
    """
    if status in ("right", "timeout"):
        return status
    if _SAID.search(message) or (full and status in ("crashed", "failed")):
        return MEMORY
    return status


def with_memory(found: dict[str, Any], full: bool) -> dict[str, Any]:
    """What was found of an answer, in a process with a limit, with the status and the words for one that met it."""
    status = status_of(found["status"], found["message"], full)
    if status != MEMORY:
        return found
    most = resource.getrlimit(resource.RLIMIT_AS)[0] / 2**30
    said = f": {found['message']}" if _SAID.search(found["message"]) else ""
    return found | {
        "status": MEMORY,
        "message": f"it needs more than the {most:.3g} GiB of memory that it may use{said}",
    }


def is_full() -> bool:
    """Whether this process has held about all the addresses that it may have."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return most != resource.RLIM_INFINITY and _own("VmPeak") >= _MOST * most


def was_full(used: resource.struct_rusage) -> bool:
    """The same of a child that this process forked and that has ended. Of its addresses nothing is known any more, but
    of its memory: it began with what is in this process's own pages, and could add what this process's limit leaves."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    added = used.ru_maxrss * 1024 - _own("RssAnon")
    return most != resource.RLIM_INFINITY and added >= _MOST * (most - _own("VmSize"))


def _own(line: str) -> int:
    """Bytes, from Linux's account of this process."""
    found = re.search(rf"{line}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024
