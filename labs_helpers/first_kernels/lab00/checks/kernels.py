"""What proves an exercise of lab 00 right."""

from __future__ import annotations

import torch

from labs_helpers.compile.ahead_of_time import TARGETS
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers, with_unit_stride
from labs_helpers.course.verdict.kernel_trial import compiled_for, run_watched
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.measure.machine import this_machine


@exercise("00/1", "vector add", points=10, minutes=10, reference=exercises.vector_add, kernel=True)
def vector_add(student):
    for n in (256, 300, 1):
        case = f"{n} element{'s' if n > 1 else ''}, NaN around"
        x, y = surrounded(numbers(n)), surrounded(numbers(n, seed=1))
        run = run_watched(case, student, x, y)
        run.expect_written_once("z")
        a, b = x.cpu().double(), y.cpu().double()
        # One rounding of the sum; its inputs are exact.
        close(
            run.value,
            a + b,
            2.0**-24 * (a + b).abs(),
            case,
            "one rounding",
            {
                "both loads read x": 2 * a,
                "both loads read y": 2 * b,
                "y is not added": a,
                "x is not added": b,
                "a difference, not a sum": a - b,
            },
        )
        _read_once(run, x=x, y=y)
        yield case
    yield "x and y read once, z written once: 12 bytes an element"
    yield _compiles("vector add", run.launches[-1])


@exercise("00/2", "transposed copy", points=15, minutes=15, reference=exercises.transpose_copy, kernel=True)
def transpose_copy(student):
    base = numbers(96, 130)
    for case, x in {
        "64×64": base[:64, :64].contiguous(),
        "37×70, NaN around": surrounded(base[:37, :70]),
        "70×37, itself a transposed view": base[:37, :70].t(),
        "40×33, every other column": base[:40, :66:2],
        "1×1": base[:1, :1],
    }.items():
        run = run_watched(case, student, x)
        run.expect_written_once("Y")
        expected = x.cpu().double().t()
        suspects = {
            "X's column stride is taken to be 1": _transposed_with_unit_stride(x, 1),
            "X's row stride is taken to be 1": _transposed_with_unit_stride(x, 0),
        }
        if x.shape == (64, 64):
            suspects |= {
                "this is a plain copy of X: rows and columns change places in Y's pointers, "
                "and in X's they do not": expected.t(),
                "every program copied tile (0, 0): its id has to enter the rows and columns": expected[:32, :32].repeat(
                    2, 2
                ),
            }
        close(run.value, expected, 0.0, case, "a copy is exact", suspects)
        _read_once(run, X=x)
        yield case
    yield _compiles("transposed copy", run.launches[-1])


@exercise("00/3", "row sum", points=20, minutes=15, reference=exercises.row_sum, kernel=True)
def row_sum(student):
    whole = torch.randint(0, 64, (4, 256), generator=torch.Generator().manual_seed(0)).half()
    for case, x in {
        "4×256 float16, small integers": whole.to(this_machine().device),
        "5×300, NaN around": surrounded(numbers(5, 300)),
        "300×3, a transposed view": numbers(3, 300).t(),
        "1×1": numbers(1, 1),
    }.items():
        run = run_watched(case, student, x)
        run.expect_written_once("y")
        _expect_dtype(run, torch.float32, "sums of float16 are kept in float32")
        values, N = x.cpu().double(), x.shape[1]
        expected = values.sum(1)
        # A float32 sum in any order (Higham, §3.1 as in course.compare); of small integers every one is exact.
        bound = 0.0 if x.dtype == torch.float16 else N * 2.0**-24 * values.abs().sum(1)
        why = "integers below 2²⁴ add up exactly in float32" if x.dtype == torch.float16 else "N·2⁻²⁴·Σ|x|"
        full = N // 128 * 128
        close(
            run.value,
            expected,
            bound,
            case,
            why,
            {
                "every step of the loop adds the same columns: its start has to enter them": values[:, :128].sum(1)
                * -(-N // 128),
                "only the first block of each row is added": values[:, :128].sum(1),
                "only the last block is left: add to the accumulator, do not replace it": values[
                    :, (N - 1) // 128 * 128 :
                ].sum(1),
                "the last, partial block is missing": values[:, :full].sum(1),
                "every program sums row 0": expected[:1].expand(len(expected)),
                "X's column stride is taken to be 1": with_unit_stride(x, 1).sum(1),
                "the mean, not the sum": expected / N,
                "the sum goes through float16, which has 11 bits: keep the accumulator in tl.float32": expected.half()
                if x.dtype == torch.float16
                else torch.zeros(0),
                "a masked element is not 0: give the load other=0.0": torch.full_like(expected, torch.nan),
            },
        )
        _read_once(run, X=x)
        yield case
    yield "X read once, y written once"
    yield _compiles("row sum", run.launches[-1])


@exercise("00/5", "transfer: RMS norm", points=30, minutes=20, kernel=True)
def rms_norm(student):
    small = surrounded(numbers(4, 200) * 1e-3)
    small[1] = 0.0
    for case, x, eps in (
        ("4×256, eps = 0.1", numbers(4, 256) + 1, 0.1),
        ("5×300, NaN around", surrounded(numbers(5, 300) + 1), 1e-6),
        ("130×3, a transposed view, eps = 0.1", numbers(3, 130).t(), 0.1),
        ("4×200, values near eps and a row of zeros", small, 1e-4),
        ("3×190 float16, values near 1000", (1000 * numbers(3, 190)).half(), 1e-6),
    ):
        run = run_watched(case, student, x, eps)
        run.expect_written_once("y")
        _expect_dtype(run, x.dtype, "the result has X's dtype")
        values = x.cpu().double()
        squares = (values**2).mean(1, keepdim=True)
        expected = values / (squares + eps).sqrt()
        unit = 2.0**-11 if x.dtype == torch.float16 else 2.0**-24
        # The root halves the relative error of the mean, N + 1 roundings; root, division and store add one each.
        bound = ((x.shape[1] + 8) * 2.0**-24 + unit) * expected.abs() + (2.0**-25 if x.dtype == torch.float16 else 0)
        padded = -(-x.shape[1] // 128) * 128
        close(
            run.value,
            expected,
            bound,
            case,
            "N+8 float32 roundings and one of the result",
            {
                "x² overflows in float16 above 256: go to tl.float32 before squaring": torch.zeros_like(values)
                if x.dtype == torch.float16
                else torch.zeros(0),
                "the sum of squares is divided by the padded length of the row, not by N": values
                / (squares * x.shape[1] / padded + eps).sqrt(),
                "the sum of squares, not their mean: divide by N": values / (squares * x.shape[1] + eps).sqrt(),
                "the square root is missing": values / (squares + eps),
                "eps is missing": values / squares.sqrt(),
                "eps is added outside the square root": values / (squares.sqrt() + eps),
                "the mean is subtracted, as a LayerNorm does; RMS norm only divides": (
                    values - values.mean(1, keepdim=True)
                )
                / (values.var(1, unbiased=False, keepdim=True) + eps).sqrt(),
                "multiplied by the root mean square instead of divided": values * (squares + eps).sqrt(),
                "the mean is taken over the first block of the row alone": values
                / ((values[:, :128] ** 2).sum(1, keepdim=True) / x.shape[1] + eps).sqrt(),
            },
        )
        if len(run.launches) > 1:
            raise Wrong(case, f"{len(run.launches)} kernels were launched; one is enough")
        _read_at_most_twice(run, x)
        yield case
    yield "one kernel, X read at most twice, y written once"
    yield _compiles("RMS norm", run.launches[-1])


def _transposed_with_unit_stride(x, dim: int) -> torch.Tensor:
    return with_unit_stride(x, dim).t()


def _read_once(run, **tensors) -> None:
    for name, tensor in tensors.items():
        run.expect_loads(name, tensor, 1, "each element belongs to one program, which reads it once")


def _read_at_most_twice(run, x) -> None:
    if (counts := run.counts(x)) is None:
        return
    if not counts.loads.any():
        raise Wrong(run.case, "X was never loaded: the kernel did not get X itself")
    if (most := int(counts.loads.max())) > 2:
        raise Wrong(
            run.case, f"an element of X is loaded {most} times; twice is enough: once for the mean, once for the result"
        )


def _expect_dtype(run, dtype, why: str) -> None:
    if isinstance(run.value, torch.Tensor) and run.value.dtype != dtype:
        raise Wrong(run.case, f"the result is {run.value.dtype}, expected {dtype}: {why}")


def _compiles(case: str, launch) -> str:
    """The compiler's word on the kernel in float16 on another chip than this one: what only the interpreter takes
    is found here."""
    compiled = compiled_for(case, launch, "sm_90", torch.float16)
    registers = "" if compiled.registers is None else f": {compiled.registers} registers a thread"
    return f"compiles for sm_90 ({TARGETS['sm_90']}){registers}"
