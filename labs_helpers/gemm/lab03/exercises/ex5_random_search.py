"""Lab 03, exercise 5: a few measurements instead of all."""

import math
import random

from labs_helpers.gemm.lab03.exercises.ex3_prune import prune


def random_search(configs, M, N, K, chip, measure, budget, seed):
    """(best, curve): the fastest configuration that `budget` measurements find, drawn at random.

    measure(config) gives ms, math.inf where the configuration cannot run; it is called `budget`
    times, never twice for the same one. curve[i]: the fastest time of the first i + 1. The same
    seed draws the same ones, another seed others, and `random`'s own state stays as it is.
    """
    # 1. Draw from what `prune` keeps of configs, not from everything: why waste a measurement?
    # 2. A generator of your own, random.Random(seed); `sample` draws without replacement.
    # 3. Measure what was drawn, remember the fastest so far, and write it into the curve each time.
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
