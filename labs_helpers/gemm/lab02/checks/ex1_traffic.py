"""Check exercise 1 of lab 02: compare FLOPs and bytes with the counts of PyTorch and of the meter."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Wrong, expect_number
from labs_helpers.course.withheld import Withheld
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.measure.machine import this_machine

NAMES = ("flops", "unfused_bytes", "fused_bytes")
PASSES = "the product writes M·N elements, the sum reads 2·M·N and writes M·N, the ReLU reads M·N and writes M·N"


@exercise("02/1", "traffic", points=5, minutes=10, reference=exercises.traffic)
def traffic(student):
    M, N, K, itemsize = 96, 80, 28, 4  # no size is a multiple of another, so mistakes give different numbers
    answer = student(M, N, K, itemsize)
    if not (isinstance(answer, (tuple, list)) and len(answer) == 3):
        raise Wrong("", f"returned {answer!r:.80}; return three numbers, ({', '.join(NAMES)})")
    flops, unfused, fused = answer
    a, b, c = torch.randn(M, K), torch.randn(K, N), torch.randn(M, N)
    with TorchTraffic() as counted:
        (a @ b + c).relu()
    fused_bytes = _fused_bytes(a, b, c)

    expect_number("", "flops", flops, 2 * M * N * K + 2 * M * N, _flops(M, N, K))
    yield f"{flops:,} FLOPs at M, N, K = {M}, {N}, {K}"

    plain = [("this is fused_bytes: the order is flops, unfused_bytes, fused_bytes", fused_bytes)]
    expect_number("", "unfused_bytes", unfused, counted.bytes, plain + _bytes(counted.bytes, M, N, K, itemsize))
    yield f"unfused: {unfused:,} bytes, as counted in PyTorch: " + ", ".join(
        f"{o.name} {o.bytes:,}" for o in counted.operations
    )

    plain = [
        ("the fused kernel still reads C and writes D, M·N elements each", fused_bytes - M * N * itemsize),
        ("in a fused kernel the product and the sum never leave the registers", counted.bytes),
        ("these are the bytes that fusing saves; return the bytes that remain", counted.bytes - fused_bytes),
    ]
    expect_number("", "fused_bytes", fused, fused_bytes, plain + _bytes(fused_bytes, M, N, K, itemsize, ""))
    yield f"fused: {fused:,} bytes, " + ("as the meter counts" if _counts() else "each tensor once")

    for shape in ((1, 1, 1), (4096, 4096, 4096), (128, 11008, 4096)):
        right = exercises.traffic(*shape, 2)
        for name, got, expected, always in zip(
            NAMES, student(*shape, 2), right, exercises.traffic(*shape, 4), strict=True
        ):
            causes = [("itemsize is not used, but an element has 2 bytes here", always)]
            expect_number(f"M, N, K = {shape}, itemsize 2", name, got, expected, causes)
    yield "other shapes and item sizes"


def _flops(M: int, N: int, K: int) -> list:
    return [
        ("a multiply-add is two FLOPs", M * N * K + 2 * M * N),
        ("the sum with C and the maximum are M·N FLOPs each", 2 * M * N * K),
        ("the sum with C and the maximum are M·N FLOPs each, and one of them is missing", 2 * M * N * K + M * N),
        ("K multiply-adds count as 2·K FLOPs here, although the first of them has nothing to add to",
         2 * M * N * K + M * N),
        ("the sum with C and the maximum have M·N elements", 2 * M * N * K + 2 * K * N),
        ("the sum with C and the maximum have M·N elements", 2 * M * N * K + 2 * M * K),
        ("a multiply-add is two FLOPs, and the sum and the maximum add one each", M * N * K),
    ]  # fmt: skip


def _bytes(right: int, M: int, N: int, K: int, itemsize: int, passes: str = PASSES) -> list:
    """Return (cause, bytes) of mistakes that omit or add whole matrices. passes: a sentence about M·N matrices."""
    matrix = M * N * itemsize
    found = [
        ("bytes are elements times itemsize", right // itemsize),
        ("the elements are multiplied by itemsize twice", right * itemsize),
        ("these are bits; itemsize is in bytes", 8 * right),
        ("only the product reads A and B", right + 2 * (M * K + K * N) * itemsize),
        ("only the product reads A and B", right + (M * K + K * N) * itemsize),
        ("parentheses are missing: multiply the sum of all elements by itemsize",
         tuple(right // itemsize + (itemsize - 1) * part for part in (K * N, K * N + M * N, M * N, 2 * M * N))),
        ("the reads of A and B are missing", right - (M * K + K * N) * itemsize),
        ("the read of A is missing", right - M * K * itemsize),
        ("the read of B is missing", right - K * N * itemsize),
        ("A has M·K elements", right + (M * N - M * K) * itemsize),
        ("B has K·N elements", right + (M * N - K * N) * itemsize),
        ("count each element of A and B once, not once per multiplication",
         right + (2 * M * N * K - M * K - K * N) * itemsize),
    ]  # fmt: skip
    many = "times M·N elements too"
    if passes:
        found += [("A has M·K elements and B has K·N", right + (2 * M * N - M * K - K * N) * itemsize)]
        found += [(f"{n} {many} few: {passes}", right - n * matrix) for n in range(1, 6)]
    return found + [(f"{n} {many} many{': ' * bool(passes)}{passes}", right + n * matrix) for n in range(1, 6)]


def _counts() -> bool:
    """Return whether the meter can count. It needs the interpreter and the kernel, which some hand-outs leave out."""
    return this_machine().interpreted and not isinstance(exercises.matmul_add_relu, Withheld)


def _fused_bytes(a, b, c) -> int:
    """Count the bytes of the fused kernel with one tile for all of D; without a meter, add up the tensors' sizes."""
    if not _counts():
        return sum(t.numel() * t.element_size() for t in (a, b, c, c))
    with metered() as meter:
        exercises.matmul_add_relu(a, b, c, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32)
    return meter.bytes_moved
