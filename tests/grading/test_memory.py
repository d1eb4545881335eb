"""The memory limit as an option, and an answer that ran into it told from others."""

import os
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

import labs_helpers
from labs_helpers.grading.jails.bubblewrap import Limits, run_in_jail, why_not
from labs_helpers.grading.jails.memory import MEMORY, size, status_of

needs_jail = pytest.mark.skipif(bool(why_not()), reason=why_not())
COURSE = Path(labs_helpers.__file__).parent


def test_a_size_has_a_unit():
    assert [size(text) for text in ("2G", "1500M", "1.5g", " 4GiB ")] == [2**31, 1500 * 2**20, 3 * 2**29, 2**32]


@pytest.mark.parametrize("text", ["2", "G", "-2G", "2T", "two", "", "2 000M", "512M", "0G"])
def test_what_is_no_size_or_too_little_is_said(text):
    with pytest.raises(ArgumentTypeError, match="a number with M or G|too little: Python, torch and Triton need 1G"):
        size(text)


@pytest.mark.parametrize("message", [  # each as it was said under prlimit --as
    "MemoryError: ",
    "MemoryError: Unable to allocate 76.3 MiB for an array with shape (10000000,) and data type float64",
    "256 elements, NaN around: MemoryError: keep.append(bytearray(10**5))\n  line 4: keep.append(bytearray(10**5))",
    "InterpreterError: MemoryError((1024, 1024), dtype('float32'))",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
    "to allocate 40000000 bytes. Error code 12 (Cannot allocate memory)",
    "RuntimeError: std::bad_alloc",
    "OSError: [Errno 12] Cannot allocate memory",
])  # fmt: skip
@pytest.mark.parametrize("status", ["wrong", "failed", "crashed"])
def test_words_for_want_of_memory(status, message):
    assert status_of(status, message) == MEMORY


@pytest.mark.parametrize("status, message, full, expected", [
    ("right", "MemoryError: ", True, "right"), ("timeout", "did not end within 10 s", True, "timeout"),
    ("crashed", "ended without a word", True, MEMORY), ("crashed", "ended without a word", False, "crashed"),
    ("failed", "OSError: the source of add cannot be found", True, MEMORY), ("failed", "KeyError: 3", False, "failed"),
    ("wrong", "returned None, a NoneType", True, "wrong"),  # whatever it held, this is what is wrong
    ("wrong", "RuntimeError: can't start new thread", False, "wrong"),
    ("wrong", "RuntimeError: could not create a primitive", False, "wrong"),
])  # fmt: skip
def test_a_full_process_counts_where_nothing_plainer_is_said(status, message, full, expected):
    assert status_of(status, message, full) == expected


FORKED = """
import os
from labs_helpers.grading.jails.memory import is_full, was_full
child = os.fork()
if child == 0:
    kept = []
    try:
        for _ in range({count}):
            kept.append(b"%d" % len(kept) * 10**5)
    except MemoryError:
        kept.append(None)
    os.write(1, str((is_full(), kept[-1] is None)).encode())
    os.abort()
print(was_full(os.wait4(child, 0)[2]))
"""


@needs_jail
@pytest.mark.parametrize("count, told", [(10**6, "(True, True)True\n"), (200, "(False, False)False\n")])
def test_a_process_at_its_limit_knows_and_its_parent_knows_when_it_has_died(count, told):
    command = [sys.executable, "-c", FORKED.format(count=count)]
    assert run_in_jail(command, [COURSE], Limits(memory=2**30), timeout=100) == told


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts processes' memory")
def test_without_a_limit_nothing_is_full():
    from labs_helpers.grading.jails.memory import is_full, was_full

    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", ""])
    assert not was_full(os.wait4(child, 0)[2]) and not is_full()
