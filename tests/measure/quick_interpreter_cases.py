"""Run kernels in Triton's own interpreter and in the accelerated one, and print the differences."""

import torch

from labs_helpers.measure.machine import prepare_triton
from labs_helpers.measure.quick_interpreter import quicken

prepare_triton()

import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def half_of(x):
    return tl.cdiv(x, 2)


@triton.jit
def softmax_of_products(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=(rows[:, None] < n) & (columns < n), other=0.0)
    y = tl.load(y_ptr + columns[:, None] * n + columns[None, :], mask=(columns[:, None] < n) & (columns < n), other=0)
    s = tl.dot(x, tl.trans(y), input_precision="ieee") * scale + 1
    s = tl.where(columns[None, :] <= rows[:, None], s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, 1)[:, None] * half_of(n) - (columns % 3).to(tl.int64)
    tl.store(
        out_ptr + rows[:, None] * n + columns, p.to(out_ptr.dtype.element_ty), mask=(rows[:, None] < n) & (columns < n)
    )


@triton.jit
def numbers(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    bits = (i.to(tl.uint8) << 1) ^ (i > 3)
    total = tl.zeros((BLOCK,), tl.float16) + bits + tl.cumsum(i, 0) // 7 - i * -2.5
    for k in range(n // 4):
        total += tl.load(x_ptr + k) * (1 / (k + 1))
    tl.store(out_ptr + i, total.to(tl.float32), mask=i < n)


@triton.jit
def no_power_of_two(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.zeros((BLOCK - 1,), tl.float32))


@triton.jit
def a_fraction(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.zeros((BLOCK / 2,), tl.float32)))


@triton.jit
def other_lengths(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK) + tl.arange(0, BLOCK // 2))


@triton.jit
def added_pointers(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr + y_ptr))


KERNELS = (softmax_of_products, numbers, no_power_of_two, a_fraction, other_lengths, added_pointers)


def found(kernel, dtype):
    x, y = (torch.randn(13, 13, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in (0, 1))
    out = torch.zeros(13, 13, dtype=dtype)
    try:
        kernel[2,](x, y, out, 13, 0.3, BLOCK=16)
    except Exception as error:
        return f"{error!r} from {error.__cause__!r}"
    return out.tolist()


def all_found():
    return {
        f"{kernel.__name__}, {dtype}": found(kernel, dtype)
        for kernel in KERNELS
        for dtype in (torch.float16, torch.float32)
    }


own = all_found()
quicken()
for _ in range(2):
    for case, result in all_found().items():
        if result != own[case]:
            print(case, own[case], result, sep="\n  ")
print(sum(isinstance(result, str) for result in own.values()), "of", len(own), "are errors")
