"""Lab 09, exercise 1: model states per rank in each stage."""


def states_in_bytes(count, ranks, layout):
    """Return {stage: (parameters, gradients, optimizer)}, the bytes that each rank holds.

    The stages are "DDP", "ZeRO-1", "ZeRO-2", and "ZeRO-3". count: number of parameters in the
    model. ranks: number of ranks, which receive equal parts of everything that a stage
    partitions; fractions of a byte are fine. The optimizer is Adam, which keeps two moments.
    layout is one of:
    "bf16 with float32 master": parameters and gradients are bf16. The optimizer holds three
    float32 numbers per parameter: both moments and the master weight.
    "autocast over float32": everything is float32, and there are no master weights.
    "bf16": everything is bf16, and there are no master weights.
    """
    # 1. For each layout, write down the bytes per parameter of each of the three kinds of state.
    # 2. DDP divides nothing. Each later stage divides one more kind.
    ### BEGIN SOLUTION
    layouts = {
        "bf16 with float32 master": (2, 2, 12),
        "autocast over float32": (4, 4, 8),
        "bf16": (2, 2, 4),
    }
    parameters, gradients, optimizer = (count * each for each in layouts[layout])
    return {
        "DDP": (parameters, gradients, optimizer),
        "ZeRO-1": (parameters, gradients, optimizer / ranks),
        "ZeRO-2": (parameters, gradients / ranks, optimizer / ranks),
        "ZeRO-3": (parameters / ranks, gradients / ranks, optimizer / ranks),
    }
    ### END SOLUTION
