"""Exercise 4 of lab 00: FLOPs, bytes and bounds of five operations, held against what PyTorch moves."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Wrong, expect_number, expect_tuple
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.measure.datasheet import DATASHEET

ROOFS = {name: (DATASHEET[name].fp16_flops, DATASHEET[name].bandwidth) for name in ("T4", "H200")}
ROOFS["a machine of 300 GFLOP/s and 30 GB/s"] = 300e9, 30e9


@exercise("00/4", "five operations", points=15, minutes=15, reference=exercises.five_operations)
def five_operations(student):
    n, itemsize = 64, 4
    x, v, V = torch.ones(n, n), torch.ones(n), torch.ones(n, 32)
    operations = {
        "X + Y": lambda: x + x,
        "row sums of X": lambda: x.sum(1),
        "X · v": lambda: x @ v,
        "X · V": lambda: x @ V,
        "X · Y": lambda: x @ x,
    }
    answer, expected = (function(n, itemsize, 1e12, 1e12) for function in (student, exercises.five_operations))
    if not isinstance(answer, dict) or set(answer) != set(operations):
        raise Wrong("", f"returned {answer!r}; a dict with the keys {', '.join(map(repr, operations))} is asked for")
    for name, operation in operations.items():
        case = f"{name} at n = {n}, {itemsize} bytes an element"
        flops, moved, _ = expect_tuple(case, answer[name], "flops", "bytes", "bound")
        expect_number(case, "flops", flops, expected[name][0], flops_causes(name, n, expected[name][0]))
        with TorchTraffic() as counted:
            operation()
        expect_number(case, "bytes", moved, counted.bytes, bytes_causes(name, n * n * itemsize, itemsize, counted))
        yield f"{name}: {flops:,} FLOPs, {moved:,} bytes, as counted in PyTorch"
    for machine, roofs in ROOFS.items():
        for n, itemsize in ((8192, 2), (1024, 4), (16, 4)):
            _expect_bounds(f"n = {n}, {itemsize} bytes an element, {machine}", student, n, itemsize, *roofs)
        yield f"bounds under the roofs of {machine}"


def flops_causes(name: str, n: int, flops: int):
    if "·" in name:
        yield "a multiply-add is two FLOPs", flops // 2
    if name == "X · V":
        yield "V has 32 columns, and each is a product X · v", 2 * n * n
    if name == "X · Y":
        yield "each of the n² elements of the product takes n multiply-adds", 2 * n * n


def bytes_causes(name: str, matrix: int, itemsize: int, counted: TorchTraffic):
    yield "bytes are elements times itemsize", counted.bytes // itemsize
    yield "the result is written as well", sum(operation.bytes_read for operation in counted.operations)
    if "Y" in name:
        yield "both matrices are read", counted.bytes - matrix
    if name != "row sums of X":
        yield "only X is counted; what X meets is read and the result is written", matrix


def _expect_bounds(case: str, student, n: int, itemsize: int, peak: float, bandwidth: float) -> None:
    answer, expected = (f(n, itemsize, peak, bandwidth) for f in (student, exercises.five_operations))
    for name, right in expected.items():
        if answer[name] == right:
            continue
        cause, other = "", {"memory": "compute", "compute": "memory"}
        if answer[name][:2] != right[:2]:
            cause = "a number of n = 64 or of 4 bytes stands in the function"
        elif all(answer[key][2] == other[value[2]] for key, value in expected.items()):
            cause = "the comparison is the wrong way round, in every operation"
        seconds = f"computing takes {right[0] / peak:.2g} s, moving {right[1] / bandwidth:.2g} s"
        advice = "compare flops / peak_flops with bytes / bandwidth: the bound comes from both roofs, n and itemsize."
        raise Wrong(case, f"{name} is {answer[name]}, expected {right}: {seconds}.", cause=cause, advice=advice)
