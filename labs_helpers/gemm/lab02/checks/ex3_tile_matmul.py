"""Exercise 3 of lab 02: the K loop."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, kernel_cases, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.products import product, reuse, truth


@exercise("02/3", "the K loop", points=15, minutes=20, reference=exercises.tile_matmul, kernel=True)
def tile_matmul(student):
    half = numbers(128, 128).half().t(), numbers(128, 64, seed=1).half()
    cases = (
        ("128×192×96 float32", numbers(128, 96), numbers(96, 192, seed=1)),
        ("128×64×128 float16, A transposed", *half),
        ("64×128×64 float32, B a slice", numbers(64, 64), surrounded(numbers(64, 128, seed=1))),
    )
    run = yield from kernel_cases(student, cases, truth, causes, reuse)
    yield check_tensor_cores(run.launches[-1])


def causes(run, a, b):
    K, block = a.shape[1], run.launches[-1].constexprs.get("BLOCK_K", 32)
    first, last = product(a[:, :block], b[:block]), product(a[:, K - block :], b[K - block :])
    yield "A is read as if its strides were K and 1: a transposed A has others", product(_plain_strides(a), b)
    yield "every step multiplies the same tiles: the loop's start has to enter k", K // block * first
    yield "only the last step is left: the product has to be added to the accumulator", last
    yield "only the first step is done", first
    yield "the last step is missing", product(a[:, : K - block], b[: K - block])
    yield "the first step is missing", product(a[:, block:], b[block:])


def _plain_strides(x):
    """x's memory read as contiguous rows, where that stays inside; else x."""
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    return torch.as_strided(x, x.shape, (x.shape[1], 1)) if x.numel() <= room else x
