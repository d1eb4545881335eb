"""Test kernels that access other memory: by a computed address, by an index that is too large, and by an atomic."""

import torch
import triton
import triton.language as tl

from labs_helpers.grading.jails.own_memory import _Guarded, _ranges


@triton.jit
def far(x_ptr, far_away, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr + far_away))


@triton.jit
def write(x_ptr, far_away):
    tl.store(x_ptr + far_away, 1.0)


@triton.jit
def add(x_ptr, far_away):
    tl.atomic_add(x_ptr + far_away, 1.0)


@triton.jit
def masked(x_ptr, n, out_ptr):
    at = tl.arange(0, 16)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


PROGRAM = """
import sys
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
import torch
from labs_helpers.grading.jails.own_memory import keep_to_own_memory
keep_to_own_memory(); keep_to_own_memory()
from tests.grading.test_own_memory import add, far, masked, write
x, out = torch.ones(8), torch.zeros(16)
masked[(1,)](x, 8, out)
far[(1,)](x[2:], -2, out)
assert out.sum() == 8
for kernel, given in ((far, (10**6, out)), (write, (8,)), (add, (-1,)), (far, (8, out))):
    try:
        kernel[(1,)](x, *given)
    except Exception as error:
        assert "outside of its tensors" in str(error), error
    else:
        sys.exit(f"{kernel} reached it")
assert x.sum() == 8
print("kept")
"""


def test_a_kernel_keeps_to_its_tensors():
    import os
    import sys

    from labs_helpers.labs import ROOT
    from labs_helpers.launch.process import run

    environment = os.environ | {"LABS_DEVICE": "cpu", "PYTHONPATH": str(ROOT)}
    assert "kept" in run([sys.executable, "-c", PROGRAM], timeout=100, env=environment)


def test_ranges_are_those_of_storages():
    x = torch.zeros(8)
    start = x.data_ptr()
    assert _ranges([x[2:4], 3, (x, "no")]) == [(start, start + 32)] * 2 and _Guarded(None).ranges == []
