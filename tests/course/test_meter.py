"""The meter counts what a kernel really loads and stores."""

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.course.meter import StrayAccess, metered
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.gemm.lab02 import exercises


@triton.jit
def shift_kernel(x_ptr, y_ptr, n, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i + shift, mask=i < n), mask=i < n)


@triton.jit
def add_up_kernel(x_ptr, total_ptr, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i))
    if ATOMIC:
        tl.atomic_add(total_ptr, part)
    else:
        tl.store(total_ptr, tl.load(total_ptr) + part)


def stray_of(call) -> StrayAccess:
    with pytest.raises(Exception) as caught, metered():
        call()
    error = caught.value
    while not isinstance(error, StrayAccess):
        error = error.__cause__
    return error


@settings(max_examples=15)
@given(tiles_m=st.integers(1, 3), tiles_n=st.integers(1, 3), steps=st.integers(1, 3))
def test_a_tiled_product_loads_a_once_a_column_of_tiles_and_b_once_a_row(tiles_m, tiles_n, steps):
    a, b = torch.randn(16 * tiles_m, 16 * steps), torch.randn(16 * steps, 16 * tiles_n)
    with metered() as meter:
        d = exercises.tile_matmul(a, b, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    assert (meter.of(a).loads == tiles_n).all() and (meter.of(b).loads == tiles_m).all()
    assert (meter.of(d).stores == 1).all() and (meter.of(d).writers == 1).all()
    assert meter.bytes_stored_beside(d) == 0 and meter.bytes_stored_beside(a) == 4 * d.numel()
    assert meter.bytes_moved == 4 * (a.numel() * tiles_n + b.numel() * tiles_m + d.numel())


def test_an_element_outside_a_view_is_stray_although_it_is_allocated():
    a = surrounded(torch.randn(64, 40))
    error = stray_of(lambda: exercises.tile_matmul(a, torch.randn(64, 64)))
    assert (error.kind, error.tensor, error.where) == ("load", "a_ptr", "row 0, column 40 of 64×40")
    assert error.program == (0, 0, 0) and "tl.load(a_ptr" in error.line


@pytest.mark.parametrize(("shift", "where"), [(1, "element 100 of 100"), (-1, "element -1 of 100")])
def test_an_address_outside_every_allocation_is_told_before_it_is_touched(shift, where):
    x, y = torch.randn(100), torch.zeros(100)
    assert where in str(stray_of(lambda: shift_kernel[(1,)](x, y, 100, shift, BLOCK=128)))
    assert not y.any()


def test_a_sum_without_atomics_has_as_many_writers_as_programs():
    x = torch.ones(64)
    for atomic in (False, True):
        total = torch.zeros(1)
        with metered() as meter:
            add_up_kernel[(4,)](x, total, BLOCK=16, ATOMIC=atomic)
        assert total.item() == 64 and meter.of(total).writers.tolist() == [4]


def test_masked_elements_are_not_counted_and_are_undefined_without_other():
    x, y = torch.ones(100), torch.zeros(128)
    with metered() as meter:
        shift_kernel[(1,)](x, y, 100, 0, BLOCK=128)
    assert meter.of(x).loads.tolist() == [1] * 100 and meter.of(y).stores.sum() == 100


def test_expanded_and_transposed_views_are_counted_by_element():
    a, b, c = torch.randn(16, 16).t(), torch.randn(16, 32), torch.randn(1, 32).expand(16, 32)
    with metered() as meter:
        exercises.matmul_add_relu(a, b, c, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    assert (meter.of(a).loads == 2).all() and meter.of(a).loads.shape == (16, 16)
    assert (meter.of(c).loads == 16).all()  # one row, read by 16 rows of D


def test_outside_the_block_nothing_is_patched():
    from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder

    before = InterpreterBuilder.create_masked_load, InterpretedFunction.run
    with pytest.raises(ZeroDivisionError), metered():
        raise ZeroDivisionError
    assert (InterpreterBuilder.create_masked_load, InterpretedFunction.run) == before


def test_counts_of_a_tensor_that_no_kernel_got_are_zero():
    with metered() as meter:
        pass
    assert meter.of(torch.ones(3)).bytes_loaded == 0 and meter.bytes_moved == 0
