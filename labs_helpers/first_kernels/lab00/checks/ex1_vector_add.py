"""Exercise 1 of lab 00: z = x + y, the last block masked."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.first_kernels.lab00.checks.blocks import block_size, covered, expect_blocks


@exercise("00/1", "vector add", points=10, minutes=10, reference=exercises.vector_add, kernel=True)
def vector_add(student):
    def case(n, **blocks):
        name = f"{n} element{'s' if n > 1 else ''}, NaN around"
        name += "".join(f", {block} = {size}" for block, size in blocks.items())
        return name, surrounded(numbers(n)), surrounded(numbers(n, seed=1)), *([blocks] if blocks else [])

    cases = (case(256), case(300), case(300, BLOCK=256), case(300, BLOCK=32), case(1))
    run = yield from kernel_cases(student, cases, truth, causes, loads, stores=stores, output="z", fused=True)
    yield "x and y read once, z written once: 12 bytes per element"
    yield check_compiles("vector add", run.launches[-1])


def truth(x, y) -> Truth:
    expected = x.cpu().double() + y.cpu().double()
    return Truth(expected, 2.0**-24 * expected.abs(), "one rounding")


def causes(run, x, y):
    x, y = x.cpu().double(), y.cpu().double()
    yield "both loads read x", 2 * x
    yield "both loads read y", 2 * y
    yield "y is not added", x
    yield "x is not added", y
    yield "this is a difference, not a sum", x - y
    yield "this is a difference, not a sum", y - x
    yield "this is a product, not a sum", x * y
    yield "this is the larger of x and y, not their sum", torch.maximum(x, y)
    yield "one of them is added twice", 2 * x + y
    yield "one of them is added twice", x + 2 * y
    for name, other, one in (("y", x, y), ("x", y, x)):
        yield f"every element gets the same element of {name}: its addresses are {name}_ptr + elements", other + one[0]
    yield "z is written backwards", (x + y).flip(0)
    n, BLOCK = len(x), block_size(run, "BLOCK", 128)
    blocks = torch.nn.functional.pad(x + y, (0, -n % BLOCK)).view(-1, BLOCK).sum(1)
    sentence = "tl.sum reduces a block to one number; here each element needs its own x + y"
    yield sentence, blocks.repeat_interleave(BLOCK)[:n]


def stores(run, x, y):
    n, BLOCK = len(x), block_size(run, "BLOCK", 128)

    def elements(start, size=BLOCK, end=n):
        return covered(run, (n, lambda i, *_: range(start(i), min(start(i) + size, end))))

    if run.launches[-1].grid[0] != -(-n // BLOCK):
        sentence = "the grid rounds down, so the last block has no program: triton.cdiv(n, BLOCK)"
        yield sentence, elements(lambda i: i * BLOCK)
        return
    yield "every program works on the same elements: add tl.program_id(0) * BLOCK to the offsets", elements(lambda i: 0)
    yield "a block starts at program id × BLOCK, not at the program id: the blocks overlap", elements(lambda i: i)
    yield "ids count from 0: the first block starts at 0, not at BLOCK", elements(lambda i: (i + 1) * BLOCK)
    yield (
        "only the first element of each block is computed; tl.arange(0, BLOCK) gives the whole block",
        elements(lambda i: i * BLOCK, 1),
    )
    yield (
        "each program computes only one element; a program covers BLOCK of them",
        elements(lambda i: i, 1),
    )
    yield "the mask leaves out the last element: use elements < n", elements(lambda i: i * BLOCK, BLOCK, n - 1)
    yield "the mask compares with BLOCK; compare with n", elements(lambda i: i * BLOCK, BLOCK, BLOCK)
    if BLOCK != 128:
        for start in (BLOCK, 128):
            yield "the number 128 is written in place of BLOCK", elements(lambda i, start=start: i * start, 128)
        yield "the number 128 is written in place of BLOCK", elements(lambda i: i * 128)


def loads(run, x, y):
    if len(x) >= 64:
        expect_blocks(run, 3 * len(x))
    for name, tensor in (("x", x), ("y", y)):
        yield name, tensor, 1, "each element belongs to one program, which reads it once"
