"""Exercise 2 of lab 00: Y = Xᵀ, tile by tile, of X with any strides."""

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
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.first_kernels.lab00.checks.blocks import block_size, covered, expect_blocks


@exercise("00/2", "transposed copy", points=15, minutes=15, reference=exercises.transpose_copy, kernel=True)
def transpose_copy(student):
    base = numbers(96, 130)
    cases = (
        ("64×64", base[:64, :64].contiguous()),
        ("37×70, NaN around", surrounded(base[:37, :70])),
        ("70×37, itself a transposed view, tiles of 64×16", base[:37, :70].t(), {"BLOCK_M": 64, "BLOCK_N": 16}),
        ("40×33, every other column, tiles of 16×64", base[:40, :66:2], {"BLOCK_M": 16, "BLOCK_N": 64}),
        ("1×1", base[:1, :1]),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, stores=stores, output="Y", fused=True)
    yield check_compiles("transposed copy", run.launches[-1])


def truth(x) -> Truth:
    return Truth(x.cpu().double().t(), 0.0, "a copy is exact")


def causes(run, x):
    values = x.cpu().double()
    yield "the kernel assumes that X's column stride is 1", with_unit_stride(x, 1).t()
    yield "the kernel assumes that X's row stride is 1", with_unit_stride(x, 0).t()
    yield (
        "this is a plain copy of X: swap rows and columns in Y's pointers, but not in X's",
        values,
    )
    first = values[:32, :32].t().repeat(2, 2)
    yield "every program copied tile (0, 0): compute its rows and columns from its ids", first
    BLOCK_M, BLOCK_N = (block_size(run, name, 32) for name in ("BLOCK_M", "BLOCK_N"))
    if BLOCK_M == BLOCK_N and x.shape[0] % BLOCK_M == x.shape[1] % BLOCK_N == 0:
        tiles = values.unflatten(1, (-1, BLOCK_N)).unflatten(0, (-1, BLOCK_M))  # tile row, row, tile column, column
        inside = tiles.permute(2, 1, 0, 3).flatten(2, 3).flatten(0, 1)
        yield "each tile is transposed twice: by Y's pointers, and again by X's or by tl.trans", inside


def stores(run, x):
    (M, N), (BLOCK_M, BLOCK_N) = x.shape, (block_size(run, name, 32) for name in ("BLOCK_M", "BLOCK_N"))

    def tiles(rows, columns):
        return covered(
            run,
            (N, lambda i, j, _: range(columns(i, j)[0], sum(columns(i, j)))),
            (M, lambda i, j, _: range(rows(i, j)[0], sum(rows(i, j)))),
        )

    def rows(start=BLOCK_M, size=BLOCK_M):
        return lambda i, j: (i * start, size)

    def columns(start=BLOCK_N, size=BLOCK_N):
        return lambda i, j: (j * start, size)

    if (*run.launches[-1].grid, 1)[:2] != (-(-M // BLOCK_M), -(-N // BLOCK_N)):
        yield _grid(run, M, N, BLOCK_M, BLOCK_N), tiles(rows(), columns())
        return
    for limit, axis, sentence in (
        (M, 0, "the mask compares columns with M; compare them with N"),
        (N, 1, "the mask compares rows with N; compare them with M"),
    ):
        within = tiles(rows(), columns())
        within.swapaxes(0, axis)[limit:] = 0
        yield sentence, within
    yield (
        "the two program ids are swapped: axis 0 counts tiles of rows, axis 1 tiles of columns",
        tiles(lambda i, j: (j * BLOCK_M, BLOCK_M), lambda i, j: (i * BLOCK_N, BLOCK_N)),
    )
    yield "tl.program_id(0) * BLOCK_M is missing from the rows", tiles(rows(0), columns())
    yield "tl.program_id(1) * BLOCK_N is missing from the columns", tiles(rows(), columns(0))
    yield "every program copies tile (0, 0): compute its rows and columns from its ids", tiles(rows(0), columns(0))
    yield "a tile starts at program id × block size, not at the id: the tiles overlap", tiles(rows(1), columns(1))
    yield "rows start at program id × BLOCK_M, not at the id: the tiles overlap", tiles(rows(1), columns())
    yield "columns start at program id × BLOCK_N, not at the id: the tiles overlap", tiles(rows(), columns(1))
    if BLOCK_M == BLOCK_N:
        return
    for start, size in ((BLOCK_N, BLOCK_N), (BLOCK_M, BLOCK_N), (BLOCK_N, BLOCK_M)):
        yield "the rows use BLOCK_N in place of BLOCK_M", tiles(rows(start, size), columns())
    for start, size in ((BLOCK_M, BLOCK_M), (BLOCK_N, BLOCK_M), (BLOCK_M, BLOCK_N)):
        yield "the columns use BLOCK_M in place of BLOCK_N", tiles(rows(), columns(start, size))
    if BLOCK_M > BLOCK_N:  # holds in the first of these cases
        yield (
            "BLOCK_M and BLOCK_N are swapped: use BLOCK_M for rows and BLOCK_N for columns",
            tiles(rows(BLOCK_N, BLOCK_N), columns(BLOCK_M, BLOCK_M)),
        )
    for both in ((rows(32, 32), columns(32, 32)), (rows(32, 32), columns()), (rows(), columns(32, 32))):
        yield "the number 32 is written in place of BLOCK_M and BLOCK_N", tiles(*both)


def _grid(run, M, N, BLOCK_M, BLOCK_N) -> str:
    """Return what is wrong with the grid."""
    grid = (*run.launches[-1].grid, 1)[:2]
    if grid == (-(-M // BLOCK_N), -(-N // BLOCK_M)):
        return "the grid divides M by BLOCK_N and N by BLOCK_M; it is the other way round"
    if grid == (-(-N // BLOCK_N), -(-M // BLOCK_M)):
        return "the grid counts tiles of columns on axis 0; the kernel uses that axis for rows"
    return "the grid rounds down, so the last tiles have no program: triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N)"


def loads(run, x):
    if not run.value.is_contiguous():
        raise Wrong(
            run.case,
            f"Y has strides {run.value.stride()}; it must be contiguous, like torch.empty((N, M)).",
            cause="Y is a view, such as torch.empty((M, N)).t(), so nothing is transposed in memory.",
        )
    if x.numel() >= 256:
        expect_blocks(run, 2 * x.numel())
    yield "X", x, 1, "each element belongs to one program, which reads it once"
