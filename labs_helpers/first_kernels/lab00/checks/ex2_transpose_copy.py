"""Exercise 2 of lab 00: Y = Xᵀ, tile by tile, of X with any strides."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded, with_unit_stride
from labs_helpers.first_kernels.lab00 import exercises


@exercise("00/2", "transposed copy", points=15, minutes=15, reference=exercises.transpose_copy, kernel=True)
def transpose_copy(student):
    base = numbers(96, 130)
    cases = (
        ("64×64", base[:64, :64].contiguous()),
        ("37×70, NaN around", surrounded(base[:37, :70])),
        ("70×37, itself a transposed view", base[:37, :70].t()),
        ("40×33, every other column", base[:40, :66:2]),
        ("1×1", base[:1, :1]),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="Y")
    yield check_compiles("transposed copy", run.launches[-1])


def truth(x) -> Truth:
    return Truth(x.cpu().double().t(), 0.0, "a copy is exact")


def causes(run, x):
    values = x.cpu().double()
    yield "X's column stride is taken to be 1", with_unit_stride(x, 1).t()
    yield "X's row stride is taken to be 1", with_unit_stride(x, 0).t()
    yield (
        "this is a plain copy of X: rows and columns change places in Y's pointers, and in X's they do not",
        values,
    )
    first = values[:32, :32].t().repeat(2, 2)
    yield "every program copied tile (0, 0): its id has to enter the rows and columns", first


def loads(run, x):
    yield "X", x, 1, "each element belongs to one program, which reads it once"
