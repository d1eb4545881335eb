"""Lab 03, exercise 7: the reference of the transfer exercise, which students do not get."""

from labs_helpers.gemm.lab03.exercises.ex3_prune import prune
from labs_helpers.gemm.lab03.exercises.ex4_grid_search import grid_search
from labs_helpers.gemm.tuning.space import grid


def tune_silu(shapes, bench_of, chip, cache, key_of, budget):
    """Return (M, N, K) → Config: the fastest correct SiLU(A·B + bias) for each of `shapes`.

    bench_of(M, N, K): a bench with run(config), expected, bound and measure(config), as in
    exercise 4.
    chip: a Datasheet. cache: a TuningCache, with get(key) and put(key, config, ms). key_of(M, N, K)
    returns the key. budget: the most measurements per shape. Do not run or measure a shape that is
    in the cache. If no configuration is correct, the value is None and the cache stays unchanged.
    """
    # This lab contains everything you need: grid(), prune, grid_search and the cache.
    ### BEGIN SOLUTION
    found = {}
    for shape in shapes:
        config = cache.get(key_of(*shape))
        if config is None:
            bench = bench_of(*shape)
            candidates = prune(grid(), *shape, chip)[:budget]
            config, times = grid_search(
                candidates, bench.run, bench.expected, bench.bound, bench.measure
            )
            if config is not None:
                cache.put(key_of(*shape), config, times[config])
        found[shape] = config
    return found
    ### END SOLUTION
