"""Rank configurations by the rule of lab 03's exercise 3, for the checks of exercises 3, 5 and 7."""

from functools import cache
from itertools import product

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03 import exercises
from labs_helpers.gemm.tuning import recorded
from labs_helpers.gemm.tuning.space import BLOCK_M, BLOCK_N, grid
from labs_helpers.measure.datasheet import DATASHEET

ELSEWHERE = (("T4", (1152, 8192, 1024)), ("A100", (4096, 4096, 4096)), ("A100", (640, 8192, 1024)))


def most_promising(shape, chip) -> list[Config]:
    """Return the 20 most promising configurations of the grid, best first, like the reference of exercise 3.

    Only numbers come from references, because a hand-out without references can store these.
    """
    candidates = [config for config in grid() if may_win(config, chip)]
    return sorted(candidates, key=lambda config: rank(config, shape, chip))[:20]


def waves_of(M, N, config, at_once) -> tuple[int, int, float]:
    """Return `waves` of a configuration in the grid, for the checks' shapes and chips, with M and N in either order."""
    return _all_waves()[M, N, config.BLOCK_M, config.BLOCK_N, at_once]


@cache
def _all_waves() -> dict:
    """Ask the reference for all cases in advance, so the questions do not depend on the answer being checked."""
    shapes = [*recorded.shapes(recorded.measured()), *recorded.shapes(recorded.measured(), "silu_matmul")]
    sides = {tuple(order) for M, N, _ in [*shapes, *(shape for _, shape in ELSEWHERE)] for order in ((M, N), (N, M))}
    counts = {sheet.multiprocessors for sheet in DATASHEET.values()}
    return {
        (M, N, m, n, at_once): exercises.waves(M, N, Config(m, n, 64), at_once)
        for (M, N), m, n, at_once in product(sorted(sides), BLOCK_M, BLOCK_N, sorted(counts))
    }


def may_win(config, chip) -> bool:
    """Return whether a configuration passes steps 1 and 2."""
    shared, accumulators, verdict = exercises.resources(config, chip)
    return verdict == "runs" and accumulators >= 32 and shared >= 0.4 * chip.shared_bytes_per_block


def cost(config, edges: float = 32, area: float = 1) -> float:
    """Return the cost of one tile by the rule."""
    return area * config.BLOCK_M * config.BLOCK_N + edges * (config.BLOCK_M + config.BLOCK_N)


def rank(config, shape, chip, *, at_once=None, swapped=False, estimate=None, sign=1, ties=1):
    """Return the sort key of a configuration: its estimate, and minus its accumulators.

    The keyword arguments reproduce mistakes. estimate: (config, tiles, waves, share of the last, at_once) → a number or
    a tuple.
    """
    M, N, _ = shape
    at_once = at_once or chip.multiprocessors
    three = waves_of(*((N, M) if swapped else (M, N)), config, at_once)
    value = estimate(config, *three, at_once) if estimate else three[1] * cost(config)
    if isinstance(value, tuple):
        return value, 0
    return sign * value, -sign * ties * exercises.resources(config, chip)[1]
