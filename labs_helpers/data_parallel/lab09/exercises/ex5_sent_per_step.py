"""Lab 09, exercise 5: what each stage sends."""


def sent_per_step(gradient_bytes, parameter_bytes, ranks, micro_batches=1):
    """{scheme: bytes that one rank sends in a step}, round lab 06's ring.

    gradient_bytes, parameter_bytes: of all gradients, and of all parameters. A step has
    `micro_batches` forward and backward passes, and one update.
    "DDP": keeps whole gradients and all-reduces them, once per step.
    "ZeRO-1 with all-reduce": the same, and all-gathers the parameters after the update.
    "ZeRO-1": keeps whole gradients and reduce-scatters them, once; all-gathers after the update.
    "ZeRO-2": keeps a shard of the gradients alone, so that every backward pass reduce-scatters;
    all-gathers after the update.
    "ZeRO-3": keeps a shard of the parameters as well, and gathers the whole before every forward
    pass, and again before every backward pass; nothing after the update.
    """
    # 1. Of a tensor of B bytes: what does a rank send in a reduce-scatter, in an all-gather, in an
    #    all-reduce? 2. How often has each scheme each of them?
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
