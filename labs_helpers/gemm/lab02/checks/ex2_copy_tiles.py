"""Check exercise 2 of lab 02: copy X tile by tile, with any strides."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, numbers, surrounded, with_unit_stride
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.cases import tile_cases


@exercise("02/2", "one tile", points=10, minutes=10, reference=exercises.copy_tiles, kernel=True)
def copy_tiles(student):
    base = numbers(96, 256)
    cases = (
        ("contiguous, 96×128", base[:, :128].contiguous()),
        ("a slice of wider rows, 96×128 in tiles of 16×64", surrounded(base[:, 128:]), {"BLOCK_M": 16}),
        ("transposed, 256×64 in tiles of 64×16", base[:64].t(), {"BLOCK_M": 64, "BLOCK_N": 16}),
        ("every other column, 96×128 in tiles of 16×128", base[:, ::2], {"BLOCK_M": 16, "BLOCK_N": 128}),
    )
    yield from tile_cases(student, cases, truth, causes, loads, output="Y", edges=False)


def truth(x) -> Truth:
    return Truth(x.cpu().double(), 0.0, "a copy is exact", x.dtype)


def causes(run, x):
    launch = run.launches[-1]
    block_m, block_n = (launch.constexprs.get(name, size) for name, size in (("BLOCK_M", 32), ("BLOCK_N", 64)))
    first = x.cpu().double()[:block_m, :block_n].repeat(x.shape[0] // block_m, x.shape[1] // block_n)
    yield "every program copies tile (0, 0); compute the rows and columns from the program's id", first
    yield "your kernel assumes that X's column stride is 1, but X may be transposed", with_unit_stride(x, 1)
    yield "your kernel assumes that X's row stride is 1", with_unit_stride(x, 0)


def loads(run, x):
    yield "X", x, 1, "each element belongs to one tile"
