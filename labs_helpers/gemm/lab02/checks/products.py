"""What lab 02's products are held to: their values, and how often A and B are loaded."""

from labs_helpers.compile.launches import Launch
from labs_helpers.course.verdict import Truth, matmul_bound

BOUND = "one rounding of the result plus (K+4)·2⁻²⁴·Σ|a||b| for float32 accumulation"


def product(a, b):
    """A·B in float64."""
    return a.cpu().double() @ b.cpu().double()


def truth(a, b, c=None) -> Truth:
    """A·B, or ReLU(A·B + C)."""
    expected, magnitude = product(a, b), a.cpu().double().abs() @ b.cpu().double().abs()
    if c is not None:
        expected, magnitude = (expected + c.cpu().double()).relu(), magnitude + c.cpu().double().abs()
    return Truth(expected, matmul_bound(expected, magnitude, a.shape[1], a.dtype), BOUND, a.dtype)


def reuse(run, a, b, *_):
    """A is read once for each column of tiles, B once for each row of tiles."""
    columns, rows = tiles(run.launches[-1], "N", b.shape[1]), tiles(run.launches[-1], "M", a.shape[0])
    yield "A", a, columns, f"once for each of the N/BLOCK_N = {columns} columns of tiles"
    yield "B", b, rows, f"once for each of the M/BLOCK_M = {rows} rows of tiles"


def tiles(launch: Launch, dimension: str, size: int) -> int:
    """How many tiles a launch cuts M or N into."""
    return -(-size // launch.constexprs.get(f"BLOCK_{dimension}", 64))
