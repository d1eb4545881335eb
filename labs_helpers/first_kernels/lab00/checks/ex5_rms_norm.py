"""The transfer exercise of lab 00: each row divided by its root mean square."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, Wrong, check_compiles, kernel_cases, numbers, surrounded


@exercise("00/5", "transfer: RMS norm", points=30, minutes=20, kernel=True)
def rms_norm(student):
    small = surrounded(numbers(4, 200) * 1e-3)
    small[1] = 0.0
    cases = (
        ("4×256, eps = 0.1", numbers(4, 256) + 1, 0.1),
        ("5×300, NaN around", surrounded(numbers(5, 300) + 1), 1e-6),
        ("130×3, a transposed view, eps = 0.1", numbers(3, 130).t(), 0.1),
        ("4×200, values near eps and a row of zeros", small, 1e-4),
        ("3×190 float16, values near 1000", (1000 * numbers(3, 190)).half(), 1e-6),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="y", fused=True)
    yield "one kernel, X read at most twice, y written once"
    yield check_compiles("RMS norm", run.launches[-1])


def truth(x, eps) -> Truth:
    values, precision = x.cpu().double(), torch.finfo(x.dtype)
    expected = values / ((values**2).mean(1, keepdim=True) + eps).sqrt()
    # The root halves the relative error of the mean, N + 1 roundings; root, division and store add one each.
    relative = (x.shape[1] + 8) * 2.0**-24 + precision.eps / 2
    bound = relative * expected.abs() + precision.smallest_normal * precision.eps / 2
    return Truth(expected, bound, "N+8 float32 roundings and one of the result", x.dtype, "the result has X's dtype")


def causes(run, x, eps):
    values, N = x.cpu().double(), x.shape[1]
    squares = (values**2).sum(1, keepdim=True)
    mean, padded = squares / N, -(-N // 128) * 128
    if x.dtype == torch.float16:
        yield "x² overflows in float16 above 256: go to tl.float32 before squaring", torch.zeros_like(values)
        return  # the others show in float32; here some are near 0 as well
    yield (
        "the sum of squares is divided by the padded length of the row, not by N",
        values / (squares / padded + eps).sqrt(),
    )
    yield "the sum of squares, not their mean: divide by N", values / (squares + eps).sqrt()
    yield "the square root is missing", values / (mean + eps)
    yield "eps is missing", values / mean.sqrt()
    yield "eps is added outside the square root", values / (mean.sqrt() + eps)
    layer_norm = torch.nn.functional.layer_norm(values, (N,), eps=eps)
    yield "the mean is subtracted, as a LayerNorm does; RMS norm only divides", layer_norm
    yield "multiplied by the root mean square instead of divided", values * (mean + eps).sqrt()
    first = (values[:, :128] ** 2).sum(1, keepdim=True)
    yield "the mean is taken over the first block of the row alone", values / (first / N + eps).sqrt()


def loads(run, x, eps):
    """None with an exact number: a row that fits into a block is read once, a longer one twice."""
    counts = run.counts(x)
    if counts is not None and not 1 <= counts.loads.max() <= 2:
        found = f"an element of X is loaded {counts.loads.max()} times"
        raise Wrong(run.case, f"{found}; twice is enough: once for the mean, once for the result")
    return ()
