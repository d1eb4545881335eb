"""Lab 03, exercise 3: choose the configurations worth measuring, without compiling any."""

from labs_helpers.gemm.lab03.exercises.ex1_resources import resources
from labs_helpers.gemm.lab03.exercises.ex2_waves import waves


def prune(configs, M, N, K, chip):
    """Return at most 40% of `configs` to measure at M×N×K on `chip`, the most promising first.

    chip: a Datasheet, with chip.multiprocessors. Do not compile or run anything.
    """
    # 1. Drop configurations that are too large or spill.
    # 2. Drop configurations with too few loads in flight: those whose pipeline fills less than 40%
    #    of the shared memory that a program may use, and those with fewer than 32 accumulators per
    #    thread.
    # 3. Estimate the others: multiply the waves (one program per SM) by the cost of one tile. The
    #    cost is its BLOCK_M·BLOCK_N multiply-adds plus 32 times its edges, BLOCK_M + BLOCK_N, which
    #    the program has to load.
    # 4. Sort by the estimate, lowest first; of equals, put the one with more accumulators first.
    #    Keep 20 of the whole grid, and never more than 40% of a shorter list.
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
