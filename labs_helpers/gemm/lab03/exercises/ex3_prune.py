"""Lab 03, exercise 3: which configurations are worth a measurement, without compiling one."""

from labs_helpers.gemm.lab03.exercises.ex1_resources import resources
from labs_helpers.gemm.lab03.exercises.ex2_waves import waves


def prune(configs, M, N, K, chip):
    """At most 40% of `configs`: those worth measuring at M×N×K on `chip`, the most promising first.

    chip: a Datasheet, with chip.multiprocessors. Nothing is compiled and nothing is run.
    """
    # 1. Leave out what is too large or spills.
    # 2. Leave out what hides too little: a pipeline that fills less than 40% of the shared memory a
    #    program may have, or fewer than 32 accumulators per thread, has too little in flight.
    # 3. Estimate the rest: waves (one program per SM) times what one tile costs: its
    #    BLOCK_M·BLOCK_N multiply-adds, and its edges, BLOCK_M + BLOCK_N, which have to be loaded
    #    (take 32 of them).
    # 4. The lowest estimates first; of equals, the one with more accumulators. Of the
    #    whole grid 20 will do, of a shorter list fewer: 40% of it are the most.
    ### BEGIN SOLUTION
    def estimate(config):
        tile = config.BLOCK_M * config.BLOCK_N + 32 * (config.BLOCK_M + config.BLOCK_N)
        return waves(M, N, config, chip.multiprocessors)[1] * tile

    kept = []
    for config in configs:
        shared, accumulators, verdict = resources(config, chip)
        if verdict == "runs" and accumulators >= 32 and shared >= 0.4 * chip.shared_bytes_per_block:
            kept.append((estimate(config), -accumulators, config))
    kept.sort(key=lambda entry: entry[:2])
    return [config for *_, config in kept[: min(20, 2 * len(configs) // 5)]]
    ### END SOLUTION
