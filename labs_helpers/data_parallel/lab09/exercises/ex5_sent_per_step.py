"""Lab 09, exercise 5: the bytes that each stage sends per step."""


def sent_per_step(gradient_bytes, parameter_bytes, ranks, micro_batches=1):
    """Return {scheme: bytes}, the bytes that each rank sends in one step over lab 06's ring.

    gradient_bytes, parameter_bytes: bytes of all gradients and of all parameters. A step has
    `micro_batches` forward and backward passes, and one update. The schemes are:
    "DDP": keeps whole gradients and all-reduces them once per step.
    "ZeRO-1 with all-reduce": does the same, and all-gathers the parameters after the update.
    "ZeRO-1": keeps whole gradients, reduce-scatters them once per step, and all-gathers the
    parameters after the update.
    "ZeRO-2": keeps only a shard of the gradients, so it reduce-scatters in every backward pass.
    It all-gathers the parameters after the update.
    "ZeRO-3": also keeps only a shard of the parameters. It all-gathers them before every forward
    pass and again before every backward pass, but not after the update.
    """
    # 1. How many bytes does a rank send to reduce-scatter, all-gather, or all-reduce B bytes?
    # 2. How often does each scheme call each of these collectives?
    ### BEGIN SOLUTION
    share = (ranks - 1) / ranks
    G, P, K = gradient_bytes * share, parameter_bytes * share, micro_batches
    return {
        "DDP": 2 * G,
        "ZeRO-1 with all-reduce": 2 * G + P,
        "ZeRO-1": G + P,
        "ZeRO-2": K * G + P,
        "ZeRO-3": K * (2 * P + G),
    }
    ### END SOLUTION
