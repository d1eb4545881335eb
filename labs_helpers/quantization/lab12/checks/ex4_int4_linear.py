"""Check exercise 4 of lab 12: the kernel that reads packed int4 weights."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, kernel_cases
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks import products
from labs_helpers.quantization.lab12.checks.int4_kernel_causes import causes, dequantized
from labs_helpers.quantization.lab12.checks.products import activations, expect_read_once, padded
from labs_helpers.quantization.lab12.drawn import drawn, whole

half = torch.float16


@exercise(
    "12/4", "a kernel that reads int4 (W4A16)", points=20, minutes=30, reference=exercises.int4_linear, kernel=True
)
def int4_linear(student):
    single = torch.float32
    cases = (
        ("5×256 float32, groups of 64, 40×256 weight", activations(5, 256, single), *_weight(40, 256, 64)),
        ("16×192 float32, groups of 32, in tiles of 32×32", activations(16, 192, single), *_weight(70, 192, 32),
         {"BLOCK_N": 32}),
        ("1×256 float16, groups of 128, in steps of 64", activations(1, 256, half), *_weight(33, 256, 128),
         {"BLOCK_K": 64}),
        ("9×512 float16, groups of 128", activations(9, 512, half), *_weight(64, 512, 128)),
    )  # fmt: skip
    run = yield from kernel_cases(student, cases, _truth, causes, _loads, output="y", fused=True)
    yield check_tensor_cores(run.launches[-1])


def _weight(N, K, group):
    packed = whole(0, 255, N, K // 2, seed=K, dtype=torch.uint8)
    scale = 0.05 * (0.3 + drawn(N, K // group, seed=N).abs())
    zero = whole(2, 13, N, K // group, seed=group, dtype=torch.uint8)
    return padded(packed), padded(scale), padded(zero), group


def _truth(x, packed, scale, zero, group):
    return products.truth(x, dequantized(packed, scale, zero, group))


def _loads(run, x, packed, scale, zero, group):
    expect_read_once(run, "packed", packed, run.launches[-1].constexprs.get("BLOCK_N", 64))
    return ()
