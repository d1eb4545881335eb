"""What proves an exercise of lab 02 right: those that compute a product, and the others by name."""

from __future__ import annotations

import torch

from labs_helpers.compile.source import plain
from labs_helpers.course.exercise import exercise
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.compare import close, matmul_bound
from labs_helpers.course.verdict.inputs import numbers, with_unit_stride
from labs_helpers.course.verdict.kernel_trial import check_tensor_cores, run_watched
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.gemm.lab02 import exercises

BOUND = "one rounding of the result plus (K+4)·2⁻²⁴·Σ|a||b| for float32 accumulation"


@exercise("02/2", "one tile", points=10, minutes=10, reference=exercises.copy_tiles, kernel=True)
def copy_tiles(student):
    base = numbers(96, 256)
    inputs = {
        "contiguous, 96×128": base[:, :128].contiguous(),
        "a slice of wider rows, 96×128": surrounded(base[:, 128:]),
        "transposed, 256×64 and 96×256": base[:64].t(),
        "every other column, 96×128": base[:, ::2],
    }
    for case, x in inputs.items():
        run = run_watched(case, student, x)
        run.expect_written_once("Y")
        expected = x.cpu().double()
        first = expected[:32, :64].repeat(x.shape[0] // 32, x.shape[1] // 64)
        close(
            run.value,
            expected,
            0.0,
            case,
            "a copy is exact",
            {
                "every program copied tile (0, 0): its id has to enter the rows and columns": first,
                "X's column stride is taken to be 1; it is not in a transposed X": with_unit_stride(x, 1),
                "X's row stride is taken to be 1": with_unit_stride(x, 0),
            },
        )
        run.expect_loads("X", x, 1, "each element belongs to one tile")
        yield case


@exercise("02/3", "the K loop", points=15, minutes=20, reference=exercises.tile_matmul, kernel=True)
def tile_matmul(student):
    for case, a, b in (
        ("128×192×96 float32", numbers(128, 96), numbers(96, 192, seed=1)),
        ("128×64×128 float16, A transposed", numbers(128, 128).half().t(), numbers(128, 64, seed=1).half()),
        ("64×128×64 float32, B a slice", numbers(64, 64), surrounded(numbers(64, 128, seed=1))),
    ):
        run = run_watched(case, student, a, b)
        run.expect_written_once()
        block = run.launches[-1].constexprs.get("BLOCK_K", 32)
        _close_product(run, a, b, _loop_suspects(a, b, block))
        _expect_reuse(run, a, b)
        yield case
    yield check_tensor_cores("compiled", run.launches[-1])


@exercise("02/4", "masks", points=15, minutes=15, reference=exercises.masked_matmul, kernel=True)
def masked_matmul(student):
    for M, N, K, dtype in (
        (100, 130, 70, torch.float32),
        (33, 65, 17, torch.float16),
        (1, 1, 1, torch.float32),
        (64, 64, 33, torch.float32),
    ):
        case = f"{M}×{N}×{K} {str(dtype)[6:]}, NaN around A and B"
        a, b = surrounded(numbers(M, K).to(dtype)), surrounded(numbers(K, N, seed=1).to(dtype))
        run = _with_sanitizer(student, lambda a=a, b=b, case=case: run_watched(case, student, a, b), a, b)
        run.expect_written_once()
        whole = K // 32 * 32
        _close_product(
            run,
            a,
            b,
            {
                "the last, partial step along K is lost": _product(a[:, :whole], b[:whole]),
                "a masked element of the last step is not 0: give both loads other=0.0": torch.full(
                    (M, N), torch.nan, dtype=torch.float64
                ),
            },
        )
        _expect_reuse(run, a, b)
        yield case
    yield check_tensor_cores("compiled", run.launches[-1])


@exercise("02/5", "epilogue", points=10, minutes=10, reference=exercises.matmul_add_relu, kernel=True)
def matmul_add_relu(student):
    row = surrounded(numbers(1, 130, seed=2))
    for case, a, b, c in (
        ("100×130×70 float32", numbers(100, 70), numbers(70, 130, seed=1), surrounded(numbers(100, 130, seed=2))),
        (
            "100×130×70 float16, C transposed",
            numbers(100, 70).half(),
            numbers(70, 130, seed=1).half(),
            (64 * numbers(130, 100, seed=2)).half().t(),
        ),
        ("100×130×70 float32, C one row expanded", numbers(100, 70), numbers(70, 130, seed=1), row.expand(100, 130)),
    ):
        with TorchTraffic() as outside:
            run = run_watched(case, student, a, b, c)
        run.expect_written_once()
        product, addend = _product(a, b), c.cpu().double()
        steps = -(-a.shape[1] // 32)
        _close_product(
            run,
            a,
            b,
            {
                "the ReLU comes before C is added": product.relu() + addend,
                "the ReLU is missing": product + addend,
                "C is not added": product.relu(),
                "C is added in every step of the K loop instead of once": (product + steps * addend).relu(),
                "the product is rounded to float16 before C is added: add C while the accumulator is float32": (
                    product.to(a.dtype) + c.cpu()
                ).relu()
                if a.dtype == torch.float16
                else torch.zeros(1),
            },
            c,
        )
        if len(run.launches) > 1:
            raise Wrong(case, f"{len(run.launches)} kernels were launched; fused, it is one")
        extra = [
            o.name
            for o in outside.operations
            if o.name in ("add", "add_", "relu", "relu_", "clamp", "mm", "clamp_min", "maximum", "addmm", "clone")
        ]
        if extra:
            raise Wrong(
                case,
                f"PyTorch ran {', '.join(extra)} beside the kernel.\nLikely cause: a part of the "
                "epilogue is still a kernel of its own.",
            )
        if c.stride(0):
            run.expect_loads("C", c, 1, "each program needs its own tile of C once")
        yield case
    yield "one kernel, C read once, D written once: two kernels fewer"
    yield check_tensor_cores("compiled", run.launches[-1])


@exercise("02/7", "transfer: SiLU(A·B + bias)", points=30, minutes=25, kernel=True)
def silu_matmul(student):
    for case, M, N, K, dtype in (
        ("100×130×70 float32", 100, 130, 70, torch.float32),
        ("64×64×32 float32, square", 64, 64, 32, torch.float32),
        ("33×65×40 float16", 33, 65, 40, torch.float16),
    ):
        a, b = surrounded(numbers(M, K).to(dtype)), surrounded(numbers(K, N, seed=1).to(dtype))
        bias = surrounded((8 * numbers(N, seed=2)).to(dtype))
        with TorchTraffic() as outside:
            run = run_watched(case, student, a, b, bias)
        run.expect_written_once()
        product, addend = _product(a, b), bias.cpu().double()
        x = product + addend
        magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + addend.abs()
        expected = torch.nn.functional.silu(x)
        # |SiLU'| ≤ 1.1; exp and the division are good to a few float32 roundings.
        bound = 1.1 * matmul_bound(expected, magnitude, K, dtype) + 8 * 2.0**-24 * x.abs()
        silu = torch.nn.functional.silu
        close(
            run.value,
            expected,
            bound,
            case,
            BOUND,
            {
                "a ReLU, not a SiLU: SiLU(x) = x · sigmoid(x)": x.relu(),
                "only the sigmoid: SiLU(x) = x · sigmoid(x)": x.sigmoid(),
                "the bias is added after the SiLU": silu(product) + addend,
                "the bias is missing": silu(product),
                "the bias goes along the rows: element j belongs to column j": silu(product + addend[:M, None])
                if M <= N
                else torch.zeros(1),
                "sigmoid(−x): a sign is wrong": x * (-x).sigmoid(),
            },
        )
        if len(run.launches) > 1 or any(
            o.name in ("mm", "addmm", "silu", "add", "mul", "sigmoid") for o in outside.operations
        ):
            raise Wrong(case, "more than one kernel ran; fused, it is one")
        if run.meter is not None:
            BLOCK_M = run.launches[0].constexprs.get("BLOCK_M", 64)
            run.expect_loads("bias", bias, -(-M // BLOCK_M), "once for each row of tiles")
        yield case
    yield check_tensor_cores("compiled", run.launches[-1])


def _product(a, b):
    return a.cpu().double() @ b.cpu().double()


def _close_product(run, a, b, suspects: dict, c=None) -> None:
    """The result against A·B, or ReLU(A·B + C), in float64."""
    expected, magnitude = _product(a, b), a.cpu().double().abs() @ b.cpu().double().abs()
    if c is not None:
        expected, magnitude = (expected + c.cpu().double()).relu(), magnitude + c.cpu().double().abs()
    if isinstance(run.value, torch.Tensor) and run.value.dtype != a.dtype:
        raise Wrong(run.case, f"the result is {run.value.dtype}, the inputs are {a.dtype}")
    close(run.value, expected, matmul_bound(expected, magnitude, a.shape[1], a.dtype), run.case, BOUND, suspects)


def _loop_suspects(a, b, block: int) -> dict:
    K = a.shape[1]
    first, last = _product(a[:, :block], b[:block]), _product(a[:, K - block :], b[K - block :])
    return {
        "A is read as if its strides were K and 1: a transposed A has others": _product(_plain_strides(a), b),
        "every step multiplies the same tiles: the loop's start has to enter k": K // block * first,
        "only the last step is left: the product has to be added to the accumulator": last,
        "only the first step is done": first,
        "the last step is missing": _product(a[:, : K - block], b[: K - block]),
        "the first step is missing": _product(a[:, block:], b[block:]),
    }


def _plain_strides(x):
    """x's memory read as contiguous rows, where that stays inside; else x."""
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    return torch.as_strided(x, x.shape, (x.shape[1], 1)) if x.numel() <= room else x


def _expect_reuse(run, a, b) -> None:
    """A is read once for each column of tiles, B once for each row of tiles."""
    blocks = run.launches[-1].constexprs
    M, N = run.value.shape
    BLOCK_M, BLOCK_N = blocks.get("BLOCK_M", 64), blocks.get("BLOCK_N", 64)
    columns, rows = -(-N // BLOCK_N), -(-M // BLOCK_M)
    run.expect_loads("A", a, columns, f"once for each of the N/BLOCK_N = {columns} columns of tiles")
    run.expect_loads("B", b, rows, f"once for each of the M/BLOCK_M = {rows} rows of tiles")


def _with_sanitizer(student, trial, a, b):
    """`trial()`; when it finds a stray access, what triton-viz's sanitizer says of it is added."""
    try:
        return trial()
    except Wrong as wrong:
        from labs_helpers.course.verdict.sanitizer import sanitize

        if " outside " in wrong.message and (told := sanitize(plain(student).__name__, student, a, b)):
            raise Wrong(wrong.case, f"{wrong.message}\n{told}") from None
        raise
