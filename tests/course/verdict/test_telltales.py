"""What a kernel's text gives away, and that a right kernel gives nothing away."""

import torch
import triton
import triton.language as tl

from labs_helpers.course.verdict.telltales import telltales
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.gemm.lab02 import exercises as more


@triton.jit
def python_and(x_ptr, M, N: tl.constexpr):
    rows = tl.arange(0, N)
    exists = (rows >= 0) and (rows < M)
    tl.store(x_ptr + rows, 0.0, mask=exists)


@triton.jit
def no_brackets(x_ptr, M, N: tl.constexpr):
    rows = tl.arange(0, N)
    tl.store(x_ptr + rows, 0.0, mask=rows >= 0 & rows < M)


@triton.jit
def a_chain(x_ptr, M, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 0.0, mask=0 <= tl.arange(0, N) < M)


@triton.jit
def a_not(x_ptr, M, N: tl.constexpr):
    rows = tl.arange(0, N)
    tl.store(x_ptr + rows, 0.0, mask=not (rows >= M))


@triton.jit
def subscripted(x_ptr, M, N: tl.constexpr):
    x_ptr[tl.arange(0, N)] = 0.0


@triton.jit
def powers(x_ptr, M, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), x**2)


@triton.jit
def builtin_max(x_ptr, M, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr + tl.arange(0, N), max(x, 0.0))


@triton.jit
def axis_zero_point_zero(x_ptr, M, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr, tl.max(x, 0.0))


@triton.jit
def torch_inside(x_ptr, M, N: tl.constexpr):
    tl.store(x_ptr + torch.arange(0, N), 0.0)


@triton.jit
def no_axis(x_ptr, M, N: tl.constexpr):
    tl.store(x_ptr + tl.program_id() + tl.arange(0, N), 0.0)


@triton.jit
def two_bounds(x_ptr, M, N: tl.constexpr):
    rows, columns = tl.program_id(0) + tl.arange(0, N), tl.program_id(1) + tl.arange(0, N)
    rows = rows + 0
    columns = columns + tl.arange(0, N)
    tl.store(x_ptr + rows + columns, 0.0, mask=(rows < M) | (columns < N))


@triton.jit
def scalars(x_ptr, M, N: tl.constexpr):
    row, total = tl.program_id(0), tl.sum(tl.load(x_ptr + tl.arange(0, N)))
    if 0 <= row < M and total > max(row, 1):
        tl.store(x_ptr + row, tl.max(tl.arange(0, N), 0))


def test_each_construct_is_told():
    for kernel, text in (
        (python_and, "Python's `and` between two blocks"),
        (no_brackets, "& binds tighter than <"),
        (a_chain, "a chain such as"),
        (a_not, "`~` works element by element"),
        (subscripted, "x_ptr is an address"),
        (powers, "Triton has no **"),
        (builtin_max, "Python's max() inside a kernel"),
        (axis_zero_point_zero, "the second argument of tl.max is an axis"),
        (no_axis, "tl.program_id takes an axis"),
        (two_bounds, "it must be inside both"),
        (torch_inside, "torch.arange: the kernel calls a function of torch"),
    ):
        assert text in "; ".join(telltales(kernel)), kernel.fn.__name__


def test_numbers_and_right_kernels_give_nothing_away():
    assert telltales(scalars) == ()
    for lab in (exercises, more):
        for name in lab.__all__:
            assert telltales(getattr(lab, name)) == (), name
