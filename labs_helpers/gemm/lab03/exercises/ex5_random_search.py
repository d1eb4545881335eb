"""Lab 03, exercise 5: measure a few configurations instead of all."""

import math
import random

from labs_helpers.gemm.lab03.exercises.ex3_prune import prune


def random_search(configs, M, N, K, chip, measure, budget, seed):
    """Return (best, curve): the fastest of `budget` configurations drawn at random.

    measure(config) returns ms, or math.inf if the configuration cannot run. Call it `budget` times,
    never twice for the same configuration. curve[i]: the fastest time of the first i + 1. The same
    seed draws the same configurations, and another seed draws others. Leave the global state of
    `random` unchanged.
    """
    # 1. Draw from the configs that `prune` keeps, not from all: why waste a measurement?
    # 2. Use your own generator, random.Random(seed); its `sample` draws without replacement.
    # 3. Measure each one, remember the fastest so far, and append its time to the curve.
    ### BEGIN SOLUTION
    candidates = prune(configs, M, N, K, chip)
    best, fastest, curve = None, math.inf, []
    for config in random.Random(seed).sample(candidates, min(budget, len(candidates))):
        ms = measure(config)
        if ms < fastest:
            best, fastest = config, ms
        curve.append(fastest)
    return best, curve
    ### END SOLUTION
