"""Lab 09, exercise 1: what one rank holds, by stage."""


def states_in_bytes(count, ranks, layout):
    """{stage: (parameters, gradients, optimizer)}: the bytes that one of `ranks` ranks holds.

    Stages: "DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3". count: the model's parameters. What a stage
    divides it divides equally; a fraction of a byte may be left. The optimizer is Adam, with two
    moments. Layouts:
    "bf16 with float32 master": parameters and gradients in bf16; both moments and a second copy
    of the parameters, the master weights, in float32: these three belong to the optimizer.
    "autocast over float32": everything that is kept is float32; there is no second copy.
    "bf16": everything is bf16; there is no second copy.
    """
    # 1. Bytes per parameter of parameters, gradients and optimizer in each layout.
    # 2. DDP divides nothing, and each stage one of them more than the stage before.
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
