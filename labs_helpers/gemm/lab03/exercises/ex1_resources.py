"""Lab 03, exercise 1: what a configuration takes of a chip, before anything is compiled."""


def resources(config, chip):
    """(shared, accumulators, verdict) of one program of the GEMM, A and B in float16.

    config: a Config. chip: a Datasheet; chip.capability is 75 for a T4, 80 for an A100, 90 for an
    H100, chip.shared_bytes_per_block the most shared memory one program may have, in bytes.
    shared: bytes of the buffers for tiles of A and B. accumulators: registers per thread that hold
    the float32 tile of D. verdict: 'too large' where the buffers do not fit the chip, else 'spills'
    where the accumulators alone are more than the 255 registers of a thread, else 'runs'.
    """
    # 1. Bytes of one buffer: a BLOCK_M×BLOCK_K tile of A and a BLOCK_K×BLOCK_N tile of B.
    # 2. How many buffers? Below 80 there is no asynchronous copy: 1. From 80 on num_stages - 1.
    #    From 90 on num_stages, since wgmma still reads one while the others are being filled.
    # 3. The tile of D over the program's threads, 32 a warp; one register holds one float32.
    # 4. The verdict.
    ### BEGIN SOLUTION
    buffer = (config.BLOCK_M + config.BLOCK_N) * config.BLOCK_K * 2
    buffers = config.num_stages - 1 if chip.capability < 90 else config.num_stages
    shared = (buffers if chip.capability >= 80 else 1) * buffer
    accumulators = config.BLOCK_M * config.BLOCK_N // (32 * config.num_warps)
    if shared > chip.shared_bytes_per_block:
        return shared, accumulators, "too large"
    return shared, accumulators, "spills" if accumulators > 255 else "runs"
    ### END SOLUTION
