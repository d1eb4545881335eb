"""Test the option for the memory limit, and that an answer that exceeded it is reported as such."""

from argparse import ArgumentTypeError

import pytest

from labs_helpers.grading.jails.memory import MEMORY, size, status_of


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


@pytest.mark.parametrize("status, message", [
    ("right", "MemoryError: "), ("timeout", "MemoryError: "), ("crashed", "ended without a word"),
    ("failed", "KeyError: 3"), ("wrong", "RuntimeError: can't start new thread"),
])  # fmt: skip
def test_other_words_and_statuses_stay_what_they_are(status, message):
    assert status_of(status, message) == status
