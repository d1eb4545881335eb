"""The transfer exercise of lab 09: a·x + y."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded


@exercise("09/2", "transfer: a·x + y", points=5, minutes=10, kernel=True)
def scale_and_add(student):
    cases = [(f"n = {n}, a = 3, NaN around", 3.0, *operands(n)) for n in (256, 300, 1)]
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="z", fused=True)
    yield check_compiles("scale and add", run.launches[-1])


def operands(n: int) -> list:
    return [surrounded(numbers(n, seed=seed)) for seed in (0, 1)]


def truth(a, x, y) -> Truth:
    product, addend = a * x.cpu().double(), y.cpu().double()
    bound = 2.0**-24 * (product.abs() + (product + addend).abs())
    return Truth(product + addend, bound, "one rounding of the product and one of the sum")


def causes(run, a, x, y):
    x, y = x.cpu().double(), y.cpu().double()
    yield "y is not added", a * x
    yield "x is not multiplied by a", x + y
    yield "a multiplies y, not x", x + a * y
    yield "a multiplies the sum, not x alone", a * (x + y)


def loads(run, a, x, y):
    for name, tensor in (("x", x), ("y", y)):
        yield name, tensor, 1, "each element belongs to one program, which reads it once"
