"""The rule of exercise 3 of lab 03, by which its check and the two after it rank configurations."""

from functools import cache
from itertools import product

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import BLOCK_M, BLOCK_N, grid
from labs_helpers.measure.datasheet import DATASHEET

ELSEWHERE = (("T4", (1152, 8192, 1024)), ("A100", (4096, 4096, 4096)), ("A100", (640, 8192, 1024)))


def most_promising(shape, chip) -> list[Config]:
    """What is worth measuring of the whole grid, best first, as the reference of exercise 3 has it; only its numbers
    are asked of references, which a hand-out without these can hold."""
    candidates = [config for config in grid() if may_win(config, chip)]
    return sorted(candidates, key=lambda config: rank(config, shape, chip))[:20]


def waves_of(M, N, config, at_once) -> tuple[int, int, float]:
    """`waves` of a tile of the grid, at a shape and for a chip of the checks, M and N in either order."""
    return _all_waves()[M, N, config.BLOCK_M, config.BLOCK_N, at_once]


@cache
def _all_waves() -> dict:
    """All are asked of the reference at once, so that what is asked does not depend on the answer that is checked."""
    shapes = [*recorded.shapes(recorded.measured()), *recorded.shapes(recorded.measured(), "silu_matmul")]
    sides = {tuple(order) for M, N, _ in [*shapes, *(shape for _, shape in ELSEWHERE)] for order in ((M, N), (N, M))}
    counts = {sheet.multiprocessors for sheet in DATASHEET.values()}
    return {
        (M, N, m, n, at_once): exercises.waves(M, N, Config(m, n, 64), at_once)
        for (M, N), m, n, at_once in product(sorted(sides), BLOCK_M, BLOCK_N, sorted(counts))
    }


def may_win(config, chip) -> bool:
    """Steps 1 and 2. An answer that keeps more is judged by its order, and by the time it loses."""
    shared, accumulators, verdict = exercises.resources(config, chip)
    return verdict == "runs" and accumulators >= 32 and shared >= 0.4 * chip.shared_bytes_per_block


def cost(config, edges: float = 32, area: float = 1) -> float:
    """What one tile costs, by the rule."""
    return area * config.BLOCK_M * config.BLOCK_N + edges * (config.BLOCK_M + config.BLOCK_N)


def rank(config, shape, chip, *, at_once=None, swapped=False, estimate=None, sign=1, ties=1):
    """The key of the order: the estimate, and minus the accumulators. What is not given here is a mistake.

    estimate: (config, tiles, waves, share of the last, multiprocessors) → a number, or a tuple."""
    M, N, _ = shape
    at_once = at_once or chip.multiprocessors
    three = waves_of(*((N, M) if swapped else (M, N)), config, at_once)
    value = estimate(config, *three, at_once) if estimate else three[1] * cost(config)
    if isinstance(value, tuple):
        return value, 0
    return sign * value, -sign * ties * exercises.resources(config, chip)[1]
