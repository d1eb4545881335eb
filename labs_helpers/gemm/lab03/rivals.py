"""Search with a learned cost model, which chooses each configuration to measure, and race it against other searches."""

from __future__ import annotations

import math
import random

import numpy as np

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.tuning.places import places_filled
from labs_helpers.gemm.tuning.recorded import Recorded, shapes
from labs_helpers.gemm.tuning.space import grid

FIRST = 4  # random measurements before the first fit


def features(config: Config, M: int, N: int, at_once: int) -> list[float]:
    """Return the model's features of a configuration, mostly as logarithms to base 2."""
    tiles, filled = places_filled(M, N, config, at_once)
    accumulators = config.BLOCK_M * config.BLOCK_N / (32 * config.num_warps)
    stage = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2
    return [
        math.log2(config.BLOCK_M),
        math.log2(config.BLOCK_N),
        math.log2(config.BLOCK_K),
        config.num_warps,
        config.num_stages,
        math.log2(accumulators),
        math.log2(stage * config.num_stages),
        1 / config.BLOCK_M + 1 / config.BLOCK_N,
        filled,
        math.log2(tiles),
    ]


def learned_search(configs, M: int, N: int, K: int, chip, measure, budget: int, seed: int):
    """Return (best, curve) like `random_search`, but let a model choose from all of `configs`.

    The first few measurements are random. After each further one, gradient-boosted trees (Friedman, Annals of
    Statistics 2001) are fitted to the logarithm of the times, and the configuration with the lowest prediction comes
    next. A configuration that could not run counts as four times the slowest.
    """
    from sklearn.ensemble import GradientBoostingRegressor

    left = list(configs)
    random.Random(seed).shuffle(left)
    seen: list[tuple[Config, float]] = []
    while left and len(seen) < budget:
        ran = [ms for _, ms in seen if math.isfinite(ms)]
        chosen = len(left) - 1
        if len(seen) >= FIRST and ran:
            times = np.log([ms if math.isfinite(ms) else 4 * max(ran) for _, ms in seen])
            model = GradientBoostingRegressor(n_estimators=40, max_depth=3, random_state=seed)
            model.fit([features(config, M, N, chip.multiprocessors) for config, _ in seen], times)
            chosen = int(np.argmin(model.predict([features(config, M, N, chip.multiprocessors) for config in left])))
        config = left.pop(chosen)
        seen.append((config, measure(config)))
    best = min(seen, key=lambda pair: pair[1], default=(None, math.inf))
    curve = np.minimum.accumulate([ms for _, ms in seen]).tolist() if seen else []
    return (best[0] if math.isfinite(best[1]) else None), curve


def random_over_all(configs, M: int, N: int, K: int, chip, measure, budget: int, seed: int):
    """Return (best, curve) of a random search over all of `configs`, without pruning."""
    drawn = random.Random(seed).sample(list(configs), min(budget, len(configs)))
    times = [measure(config) for config in drawn]
    curve = np.minimum.accumulate(times).tolist() if times else []
    return (drawn[int(np.argmin(times))] if times and math.isfinite(min(times)) else None), curve


def race(searches: dict, bench, chip, budget: int, seeds) -> dict:
    """Return name → array (seeds, budget) of regrets: how much slower the fastest so far is than the best, 0.02 for 2%.

    searches: name → function with the signature of `random_search`. bench: a Recorded.
    """
    best_ms = bench.best()[1]
    return {
        name: np.array([search(grid(), *bench.shape, chip, bench.measure, budget, seed)[1] for seed in seeds]) / best_ms
        - 1
        for name, search in searches.items()
    }


def race_all(searches: dict, measured, chip, budget: int, seeds, kernel: str = "fused_matmul") -> dict:
    """Run `race` at every recorded shape of a kernel. Returns name → array (shapes · seeds, budget)."""
    races = [
        race(searches, Recorded(measured, kernel, shape), chip, budget, seeds) for shape in shapes(measured, kernel)
    ]
    return {name: np.concatenate([one[name] for one in races]) for name in searches}


def among_kept(search, prune):
    """Wrap `search` to choose only from the configurations that `prune` keeps, with the same signature."""

    def pruned(configs, M: int, N: int, K: int, chip, measure, budget: int, seed: int):
        return search(prune(configs, M, N, K, chip), M, N, K, chip, measure, budget, seed)

    return pruned
