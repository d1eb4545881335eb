"""Exercise 1 of lab 02: bytes and FLOPs, held against what PyTorch and the meter count."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Wrong, expect_number
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.measure.machine import this_machine


@exercise("02/1", "traffic", points=5, minutes=10, reference=exercises.traffic)
def traffic(student):
    M, N, K, itemsize = 96, 64, 32, 4
    answer = student(M, N, K, itemsize)
    if not (isinstance(answer, tuple) and len(answer) == 3):
        raise Wrong("", f"returned {answer!r}; three numbers are asked for: (flops, unfused_bytes, fused_bytes)")
    flops, unfused, fused = answer
    causes = [
        ("a multiply-add is two FLOPs", M * N * K + 2 * M * N),
        ("the sum with C and the maximum are M·N FLOPs each", 2 * M * N * K),
    ]
    expect_number("", "flops", flops, 2 * M * N * K + 2 * M * N, causes)
    yield f"{flops:,} FLOPs at M, N, K = {M}, {N}, {K}"

    a, b, c = torch.randn(M, K), torch.randn(K, N), torch.randn(M, N)
    with TorchTraffic() as counted:
        (a @ b + c).relu()
    causes = [
        ("bytes are elements times itemsize", counted.bytes // itemsize),
        (
            "the product A·B is written by one kernel and read by the next, and so is the sum",
            (M * K + K * N + 2 * M * N) * itemsize,
        ),
        (
            "the ReLU is a kernel of its own: it reads the sum and writes the result",
            counted.bytes - 2 * M * N * itemsize,
        ),
        ("the ReLU reads as well as writes", counted.bytes - M * N * itemsize),
    ]
    expect_number("", "unfused_bytes", unfused, counted.bytes, causes)
    yield f"unfused: {unfused:,} bytes, as counted in PyTorch: " + ", ".join(
        f"{o.name} {o.bytes:,}" for o in counted.operations
    )

    causes = [
        ("bytes are elements times itemsize", _fused_bytes(a, b, c) // itemsize),
        ("C is still read", (M * K + K * N + M * N) * itemsize),
        ("fused, the product and the sum never leave the registers", counted.bytes),
    ]
    expect_number("", "fused_bytes", fused, _fused_bytes(a, b, c), causes)
    yield f"fused: {fused:,} bytes, " + ("as the meter counts" if this_machine().interpreted else "each tensor once")

    for shape in ((1, 1, 1), (4096, 4096, 4096), (128, 11008, 4096)):
        got, right = tuple(student(*shape, 2)), exercises.traffic(*shape, 2)
        if got != right:
            raise Wrong(
                f"M, N, K = {shape}, itemsize 2",
                f"returned {got}, expected {right}",
                cause="two of M, N and K are swapped.",
            )
    yield "other shapes and item sizes"


def _fused_bytes(a, b, c) -> int:
    """Bytes of the fused kernel with one tile for the whole of D, counted; on a GPU from the tensors' sizes."""
    if not this_machine().interpreted:
        return sum(t.numel() * t.element_size() for t in (a, b, c, c))
    with metered() as meter:
        exercises.matmul_add_relu(a, b, c, BLOCK_M=128, BLOCK_N=64, BLOCK_K=32)
    return meter.bytes_moved
