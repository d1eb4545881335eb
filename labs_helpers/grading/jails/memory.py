"""Read the memory limit from an option, and recognize answers that exceeded it."""

from __future__ import annotations

import re
import resource
from argparse import ArgumentTypeError
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


def size(text: str) -> int:
    """Return the bytes of '2G', '1.5G' or '2048M', for an option. argparse.ArgumentTypeError says what is wrong."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise ArgumentTypeError(f"a memory limit is a number with M or G, such as 2G or 1500M, not {text!r}")
    count = int(float(found[1]) * _UNITS[found[2].upper()])
    if count < LEAST:
        raise ArgumentTypeError(f"{text} is too little: Python, torch and Triton need 1G before an answer begins")
    return count


def status_of(status: str, message: str) -> str:
    """Return MEMORY if an answer with this status and message ran out of memory, else its status."""
    return MEMORY if status not in ("right", "timeout") and _SAID.search(message) else status


def with_memory(found: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an answer, with the status and the message of one that needed too much memory."""
    status = status_of(found["status"], found["message"])
    if status != MEMORY:
        return found
    most = resource.getrlimit(resource.RLIMIT_AS)[0] / 2**30
    message = f"it needs more than the {most:.3g} GiB of memory that it may use: {found['message']}"
    return found | {"status": MEMORY, "message": message}
