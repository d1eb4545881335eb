"""Lab 10, exercise 3: GPipe's order of forward and backward passes."""


def gpipe_order(rank, ranks, micro_batches):
    """Return the order in which a rank works: [("F", 0), ("F", 1), …, ("B", 0), …].

    A pair ("F", i) is the forward pass of micro-batch i through this rank's stage, and ("B", i) its
    backward pass. GPipe runs all forward passes and then all backward passes; both start with
    micro-batch 0. Each rank holds one stage, and calls the function with its number 0 … ranks − 1.
    """
    ### BEGIN SOLUTION
    return [(kind, i) for kind in "FB" for i in range(micro_batches)]
    ### END SOLUTION
