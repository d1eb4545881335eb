"""Lab 10, exercise 4: 1F1B, in which a backward pass follows as soon as it can."""


def one_f_one_b_order(rank, ranks, micro_batches):
    """Return the order in which a rank works in 1F1B: pairs ("F", i) and ("B", i).

    A rank first runs one forward pass for each rank after it. Then one forward and one backward
    pass take turns, until no forward pass is left. Then it runs the remaining backward passes.
    Both kinds start with micro-batch 0. There may be fewer micro-batches than ranks.
    """
    # 1. How many forward passes come before the first pair? There may not be that many.
    # 2. Which forward and which backward pass form pair number k?
    ### BEGIN SOLUTION
    warm_up = min(ranks - rank - 1, micro_batches)
    order = [("F", i) for i in range(warm_up)]
    for k in range(micro_batches - warm_up):
        order += [("F", warm_up + k), ("B", k)]
    return order + [("B", i) for i in range(micro_batches - warm_up, micro_batches)]
    ### END SOLUTION
