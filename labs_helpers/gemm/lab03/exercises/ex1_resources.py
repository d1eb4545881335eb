"""Lab 03, exercise 1: compute the resources that a configuration needs, without compiling it."""


def resources(config, chip):
    """Return (shared, accumulators, verdict) of one program of the GEMM, with A and B in float16.

    config: a Config. chip: a Datasheet. chip.capability is 75 for a T4, 80 for an A100 and 90 for
    an H100; chip.shared_bytes_per_block is the shared memory that one program may use, in bytes.
    shared: bytes of the buffers for tiles of A and B. accumulators: registers per thread that hold
    the float32 tile of D. verdict: 'too large' if the buffers do not fit the chip, else 'spills'
    if the accumulators alone exceed the 255 registers of a thread, else 'runs'.
    """
    # 1. Compute the bytes of one buffer, for BLOCK_M×BLOCK_K of A and BLOCK_K×BLOCK_N of B.
    # 2. Count the buffers. Below capability 80 a chip cannot copy asynchronously and needs 1. From
    #    80 on it needs num_stages - 1. From 90 on it needs num_stages, because wgmma still reads
    #    one buffer while the kernel fills the others.
    # 3. Divide the tile of D among the program's threads, 32 per warp, one float32 per register.
    # 4. Decide on the verdict.
    ### BEGIN SOLUTION
    buffer = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2
    buffers = config.num_stages - 1 if chip.capability < 90 else config.num_stages
    shared = (buffers if chip.capability >= 80 else 1) * buffer
    accumulators = config.BLOCK_M * config.BLOCK_N // (32 * config.num_warps)
    if shared > chip.shared_bytes_per_block:
        return shared, accumulators, "too large"
    return shared, accumulators, "spills" if accumulators > 255 else "runs"
    ### END SOLUTION
