"""Exercise 2 of lab 02: a copy, tile by tile, of X with any strides."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, kernel_cases, numbers, surrounded, with_unit_stride
from labs_helpers.gemm.lab02 import exercises


@exercise("02/2", "one tile", points=10, minutes=10, reference=exercises.copy_tiles, kernel=True)
def copy_tiles(student):
    base = numbers(96, 256)
    cases = (
        ("contiguous, 96×128", base[:, :128].contiguous()),
        ("a slice of wider rows, 96×128", surrounded(base[:, 128:])),
        ("transposed, 256×64 and 96×256", base[:64].t()),
        ("every other column, 96×128", base[:, ::2]),
    )
    yield from kernel_cases(student, cases, truth, causes, loads, output="Y")


def truth(x) -> Truth:
    return Truth(x.cpu().double(), 0.0, "a copy is exact")


def causes(run, x):
    first = x.cpu().double()[:32, :64].repeat(x.shape[0] // 32, x.shape[1] // 64)
    yield "every program copied tile (0, 0): its id has to enter the rows and columns", first
    yield "X's column stride is taken to be 1; it is not in a transposed X", with_unit_stride(x, 1)
    yield "X's row stride is taken to be 1", with_unit_stride(x, 0)


def loads(run, x):
    yield "X", x, 1, "each element belongs to one tile"
