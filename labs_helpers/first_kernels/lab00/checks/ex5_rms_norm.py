"""The transfer exercise of lab 00: each row divided by its root mean square."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import (
    Truth,
    Wrong,
    check_compiles,
    kernel_cases,
    numbers,
    surrounded,
    with_unit_stride,
)
from labs_helpers.first_kernels.lab00.checks.blocks import block_size, covered, expect_blocks


@exercise("00/5", "transfer: RMS norm", points=30, minutes=20, kernel=True)
def rms_norm(student):
    small = surrounded(numbers(4, 200) * 1e-3)
    small[1] = 0.0
    cases = (
        ("4×256, eps = 10", 2 * numbers(4, 256) + 1, 10.0),  # so large that each wrong place for eps changes the result
        ("5×300, NaN around", surrounded(numbers(5, 300) + 1), 1e-6),
        ("2×1100, BLOCK = 64", numbers(2, 1100), 0.1, {"BLOCK": 64}),
        ("130×3, a transposed view, eps = 0.1", numbers(3, 130).t(), 0.1),
        ("4×200, values near eps and a row of zeros", small, 1e-4),
        ("3×190 float16, values near 1000", (1000 * numbers(3, 190)).half(), 1e-6),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, stores=stores, output="y", fused=True)
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
    values, N, BLOCK = x.cpu().double(), x.shape[1], block_size(run, "BLOCK", 128)
    squares = (values**2).sum(1, keepdim=True)
    mean, padded = squares / N, -(-N // BLOCK) * BLOCK
    if x.dtype == torch.float16:
        yield "x² overflows in float16 above 256: convert to tl.float32 before squaring", torch.zeros_like(values)
        root = (mean + eps).sqrt().half()
        yield "x is divided in float16: convert to X's dtype only in the store", (x.cpu() / root).double()
        return  # the other mistakes show in float32; here some of their results are near 0 too
    yield (
        "the sum of squares is divided by the padded length of the row, not by N",
        values / (squares / padded + eps).sqrt(),
    )
    yield "the sum of squares is divided by BLOCK, not by N", values / (squares / BLOCK + eps).sqrt()
    yield "this is the sum of squares, not their mean: divide by N", values / (squares + eps).sqrt()
    yield "the square root is missing", values / (mean + eps)
    yield "eps is missing, or a constant replaces it", values / mean.sqrt()
    yield "eps is squared", values / (mean + eps * eps).sqrt()
    yield "eps is added outside the square root", values / (mean.sqrt() + eps)
    yield "eps is added to the sum, and thus divided by N: add it to the mean", values / ((squares + eps) / N).sqrt()
    yield "you take the larger of mean and eps; add them", values / mean.clamp(min=eps).sqrt()
    each = mean + eps * padded / N + eps
    yield "eps is added to each square; add it once, to the mean", values / each.sqrt()
    yield "divide by N inside the root", values * N / (squares + eps).sqrt()
    yield "divide by N inside the root", values / (squares.sqrt() / N + eps)
    yield "eps is subtracted; add it", values / (mean - eps).sqrt()
    layer_norm = torch.nn.functional.layer_norm(values, (N,), eps=eps)
    average, sentence = (
        values.mean(1, keepdim=True),
        "the mean is subtracted, as in LayerNorm; RMS norm only divides",
    )
    yield sentence, layer_norm
    yield sentence, (values - average) / (mean + eps).sqrt()
    yield sentence, values / (mean - average**2 + eps).sqrt()
    yield (
        "every program reads row 0 of X: add its row to X's pointer",
        (values / (mean + eps).sqrt())[:1].expand(len(x), N),
    )
    yield "the mean divides by N, not by N − 1", values / (squares / max(N - 1, 1) + eps).sqrt()
    yield "X's square is divided, not X", values**2 / (mean + eps).sqrt()
    blocks = torch.nn.functional.pad(values**2, (0, padded - N)).unflatten(1, (-1, BLOCK))
    so_far = blocks.sum(2).cumsum(1).repeat_interleave(BLOCK, 1)[:, :N]
    yield (
        "a block is written before the squares of later blocks are added: use two loops",
        values / (so_far / N + eps).sqrt(),
    )
    lanes = blocks.sum(1).repeat(1, padded // BLOCK)[:, :N]
    yield "the partial sums are not added up: use tl.sum", values / (lanes / N + eps).sqrt()
    sentence = "tl.sum of a block is added to each of BLOCK partial sums; call it after the loop"
    yield sentence, values / (BLOCK * mean + eps).sqrt()
    yield (
        "the sum is squared; square each x before adding",
        values / (values.sum(1, keepdim=True) ** 2 / N + eps).sqrt(),
    )
    yield (
        "x is multiplied by the root mean square instead of divided (x / tl.rsqrt(…) does that, too)",
        values * (mean + eps).sqrt(),
    )
    yield "x is not squared", values / (values.mean(1, keepdim=True) + eps).sqrt()
    yield "you average |x|, not x²", values / (values.abs().mean(1, keepdim=True) + eps).sqrt()
    squared_mean = values.mean(1, keepdim=True) ** 2
    yield "this is the square of the mean, not the mean of the squares", values / (squared_mean + eps).sqrt()
    half = (values.half() * values.half()).double().mean(1, keepdim=True)
    rounded = values / (half + eps).sqrt()
    yield "an intermediate value is rounded to float16: keep x, x² and their sum in tl.float32", rounded
    yield "X is not divided by its root mean square", values
    yield "you divide 1 by the root mean square, not X", torch.ones_like(values) / (mean + eps).sqrt()
    for end in {BLOCK, 512, 1024}:
        first = (values[:, :end] ** 2).sum(1, keepdim=True)
        yield f"the mean covers only the first {end} columns of the row", values / (first / N + eps).sqrt()
    last = (values[:, (N - 1) // BLOCK * BLOCK :] ** 2).sum(1, keepdim=True)
    yield "only the last block's squares count: add to the accumulator", values / (last / N + eps).sqrt()
    stale = torch.nn.functional.pad(values[:, (N - 1) // BLOCK * BLOCK :], (0, -N % BLOCK))
    sentence = "the second loop writes the last block that the first loop loaded: load X's columns again"
    yield sentence, stale.repeat(1, padded // BLOCK)[:, :N] / (mean + eps).sqrt()
    whole = (values[:, : N // BLOCK * BLOCK] ** 2).sum(1, keepdim=True)
    yield "the mean leaves out the last, partial block", values / (whole / N + eps).sqrt()
    with_strides = with_unit_stride(x, 1)
    other = (with_strides**2).mean(1, keepdim=True)
    yield "the kernel assumes that X's column stride is 1", with_strides / (other + eps).sqrt()
    if N % BLOCK:
        yield "masked elements are not 0 in the mean: pass other=0.0 to tl.load", torch.full_like(values, torch.nan)


def stores(run, x, eps):
    (M, N), BLOCK = x.shape, block_size(run, "BLOCK", 128)
    again, last = bool((run.counts(run.value).stores > 1).any()), (N - 1) // BLOCK * BLOCK

    def taken(end, rows=lambda i, *_: range(i, i + 1), start=0):
        return covered(run, (M, rows), (N, lambda *_: range(start, end)))

    if again:
        yield "the second loop writes the same columns in every step: add the step's start to them", taken(BLOCK)
    else:
        if last:
            yield "only the last block is written: store inside a loop over the row", taken(N, start=last)
        for end in {BLOCK, 128, 256, 512, 1024}:
            if end < N:
                yield f"only the first {end} columns of a row are written: a loop over the row is missing", taken(end)
    if N // BLOCK > 1:
        yield "the last, partial block of each row is not written", taken(N // BLOCK * BLOCK)
    yield "every program writes row 0: add its row to Y's pointer", taken(N, lambda *_: range(1))


def loads(run, x, eps):
    """Check that each element is read once or twice: once if its row fits into a block, twice if it does not."""
    counts = run.counts(x)
    if counts is not None and not 1 <= counts.loads.max() <= 2:
        found = f"an element of X is loaded {counts.loads.max()} times"
        raise Wrong(run.case, f"{found}; twice is enough: once for the mean, once for the result")
    if x.shape[1] >= 64:
        expect_blocks(run, 2 * x.numel())
    return ()
