"""What proves the two exercises of lab 00 right that are answered by counting, without a kernel."""

from __future__ import annotations

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.measure.datasheet import DATASHEET


@exercise("00/0", "how many programs?", points=5, minutes=3, reference=exercises.programs_needed)
def programs_needed(student):
    for n, BLOCK, expected in ((1000, 128, 8), (1024, 128, 8), (1, 128, 1), (129, 128, 2), (10**9, 1024, 976563)):
        case, got = f"n = {n}, BLOCK = {BLOCK}", student(n, BLOCK)
        if isinstance(got, bool) or not isinstance(got, int):
            raise Wrong(
                case,
                f"returned {got!r}, a {type(got).__name__}; a number of programs is an int.\n"
                "Likely cause: / gives a float, // an int; or there is no return.",
            )
        covered = max(0, got * BLOCK)
        if covered < n:
            cause = "// rounds down; the last, partial block needs a program too"
            if got == (BLOCK + n - 1) // n:
                cause = "n and BLOCK are swapped"
            raise Wrong(
                case,
                f"{got} of {expected} programs, for {covered:,} elements: {n - covered:,} have no "
                f"program.\nLikely cause: {cause}.",
            )
        if got > expected:
            cause = "a program takes BLOCK elements, not one" if got == n else "one is added also where BLOCK divides n"
            raise Wrong(
                case,
                f"{got} programs, where {expected} are enough: the others would have no element.\n"
                f"Likely cause: {cause}.",
            )
        yield f"{case}: {got}"


@exercise("00/4", "five operations", points=15, minutes=15, reference=exercises.five_operations)
def five_operations(student):
    n, itemsize = 64, 4
    x, y, v, V = torch.ones(n, n), torch.ones(n, n), torch.ones(n), torch.ones(n, 32)
    operations = {
        "X + Y": lambda: x + y,
        "row sums of X": lambda: x.sum(1),
        "X · v": lambda: x @ v,
        "X · V": lambda: x @ V,
        "X · Y": lambda: x @ y,
    }
    flops = {"X + Y": n * n, "row sums of X": n * n, "X · v": 2 * n * n, "X · V": 2 * n * n * 32, "X · Y": 2 * n**3}
    answer = student(n, itemsize, 1e12, 1e12)
    if not isinstance(answer, dict) or set(answer) != set(operations):
        raise Wrong("", f"returned {answer!r}; a dict with the keys {', '.join(map(repr, operations))} is asked for")
    for name, operation in operations.items():
        case = f"{name} at n = {n}, {itemsize} bytes an element"
        if not (isinstance(answer[name], tuple) and len(answer[name]) == 3):
            raise Wrong(case, f"is {answer[name]!r}; (flops, bytes, bound) is asked for")
        _same(
            case,
            "flops",
            answer[name][0],
            flops[name],
            {
                "a multiply-add is two FLOPs": flops[name] // 2,
                "V has 32 columns, and each is a product X · v": 2 * n * n if name == "X · V" else None,
                "each of the n² elements of the product takes n multiply-adds": 2 * n * n if name == "X · Y" else None,
            },
        )
        with TorchTraffic() as traffic:
            operation()
        moved = traffic.bytes
        _same(
            case,
            "bytes",
            answer[name][1],
            moved,
            {
                "bytes are elements times itemsize": moved // itemsize,
                "the result is written as well": sum(o.bytes_read for o in traffic.operations),
                "both matrices are read": moved - n * n * itemsize,
                "only X is counted; what X meets is read and the result is written": n * n * itemsize,
            },
        )
        yield f"{name}: {answer[name][0]:,} FLOPs, {moved:,} bytes, as counted in PyTorch"
    for machine, peak, bandwidth in _ROOFS:
        for size, width in ((8192, 2), (1024, 4), (16, 4)):
            _expect_bounds(machine, student, size, width, peak, bandwidth)
        yield f"bounds under the roofs of {machine}"


_ROOFS = [(name, DATASHEET[name].fp16_flops, DATASHEET[name].bandwidth) for name in ("T4", "H200")] + [
    ("a machine of 300 GFLOP/s and 30 GB/s", 300e9, 30e9)
]


def _same(case: str, name: str, got, expected: int, suspects: dict) -> None:
    if got == expected:
        return
    causes = [text for text, value in suspects.items() if got == value]
    cause = f"\nLikely cause: {causes[0]}." if causes else ""
    raise Wrong(case, f"{name} is {got!r}, expected {expected:,}{cause}")


def _expect_bounds(machine: str, student, n: int, itemsize: int, peak: float, bandwidth: float) -> None:
    answer, expected = (f(n, itemsize, peak, bandwidth) for f in (student, exercises.five_operations))
    case = f"n = {n}, {itemsize} bytes an element, {machine}"
    for name, (flops, moved, bound) in expected.items():
        if answer[name][:2] != (flops, moved):
            raise Wrong(
                case,
                f"{name}: flops and bytes are {answer[name][:2]}, expected {(flops, moved)}.\n"
                "Likely cause: a number of n = 64 or of 4 bytes stands in the function.",
            )
        if answer[name][2] == bound:
            continue
        swapped = {"memory": "compute", "compute": "memory"}
        text = (
            f"{name}: the bound is {answer[name][2]!r}, expected {bound!r}: computing takes "
            f"{flops / peak:.2g} s, moving {moved / bandwidth:.2g} s."
        )
        if all(answer[key][2] == swapped[value[2]] for key, value in expected.items()):
            raise Wrong(case, f"{text}\nLikely cause: the comparison is the wrong way round, in every operation.")
        raise Wrong(
            case,
            f"{text}\nLikely cause: the bound comes from both roofs, and from n and itemsize: compare "
            "flops / peak_flops with bytes / bandwidth.",
        )
