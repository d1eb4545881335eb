"""Check exercise 3 of lab 02: the K loop."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.cases import tile_cases
from labs_helpers.gemm.lab02.checks.products import product_causes, reuse, truth


@exercise("02/3", "the K loop", points=15, minutes=20, reference=exercises.tile_matmul, kernel=True)
def tile_matmul(student):
    half = numbers(128, 128).half().t(), numbers(128, 64, seed=1).half()
    slices = surrounded(numbers(64, 64)), surrounded(numbers(128, 64, seed=1)).t()
    oblong, wide = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}, {"BLOCK_M": 32, "BLOCK_K": 64}
    cases = (
        ("128×192×80 float32 in tiles of 64×32×16", numbers(128, 80), numbers(80, 192, seed=1), oblong),
        ("128×64×128 float16 in tiles of 32×64×64, A transposed", *half, wide),
        ("64×128×64 float32, A a slice, B a transposed slice", *slices),
    )
    run = yield from tile_cases(student, cases, truth, product_causes, reuse, edges=False)
    yield check_tensor_cores(run.launches[-1])
