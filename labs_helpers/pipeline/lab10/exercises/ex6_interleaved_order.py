"""Lab 10, exercise 6: the order of interleaved 1F1B, with several stages per rank."""


def interleaved_order(rank, ranks, micro_batches, chunks):
    """Return one rank's actions in interleaved 1F1B, a list of ("F" or "B", chunk, micro-batch).

    Each rank holds `chunks` stages: its chunk c is the stage c · ranks + rank. There are at least 2
    chunks, and `ranks` divides `micro_batches`.
    Micro-batches pass in groups of `ranks`: the first group passes through all chunks, one chunk
    after another, before the second group begins. Forward passes visit the chunks from the first to
    the last, and backward passes from the last to the first. Within a group, micro-batches ascend.
    The rank begins with w = 2 (ranks − rank − 1) + (chunks − 1) ranks forward passes, or with all
    of them if there are fewer. It then alternates, one forward and one backward pass, while forward
    passes are left. The remaining backward passes follow.
    """
    # 1. Forward pass k = 0, 1, …: which group, which chunk, which micro-batch of the group is it?
    # 2. What differs for backward pass k?
    # 3. How many forward passes are there in total, and how many of them come first?
    ### BEGIN SOLUTION
    def at(kind, k):
        group, place = divmod(k, ranks * chunks)
        chunk, i = divmod(place, ranks)
        return kind, chunk if kind == "F" else chunks - 1 - chunk, group * ranks + i

    total = micro_batches * chunks
    warm_up = min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, total)
    order = [at("F", k) for k in range(warm_up)]
    for k in range(total - warm_up):
        order += [at("F", warm_up + k), at("B", k)]
    return order + [at("B", k) for k in range(total - warm_up, total)]
    ### END SOLUTION
