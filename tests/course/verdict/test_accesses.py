"""Each access is of the tensor that its line reads or writes, wherever tensors lie in memory."""

import numpy as np
import torch
import triton
import triton.language as tl

from labs_helpers.course.verdict.accesses import accesses_of


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x, mask=i < n)


@triton.jit
def copy_tail_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) - 4
    y = tl.load(y_ptr + i, mask=i >= 0)
    tl.store(y_ptr + i, y, mask=i >= 0)


def side_by_side():
    """Two tensors with memories of their own, the second right behind the first."""
    return [torch.from_numpy(half) for half in np.split(np.zeros(16, np.float32), 2)]


def test_a_block_masked_as_a_whole_that_lies_in_the_next_tensor():
    found = accesses_of(lambda x, y: copy_kernel[(4,)](x, y, 8, BLOCK=4), *side_by_side())
    assert [(access.kind, access.name, int(access.offsets[0])) for access in found] == [
        (kind, name, begin) for begin in (0, 4, 8, 12) for kind, name in (("load", "x_ptr"), ("store", "y_ptr"))
    ]


def test_a_block_whose_first_elements_are_masked():
    found = accesses_of(lambda x, y: copy_tail_kernel[(1,)](x, y, BLOCK=8), *side_by_side())
    assert [(access.name, int(access.offsets[0])) for access in found] == [("y_ptr", -4)] * 2
