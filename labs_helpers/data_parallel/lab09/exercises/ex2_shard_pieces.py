"""Lab 09, exercise 2: cut flat memory into equal shards, across parameter boundaries."""


def shard_pieces(numels, world_size, rank):
    """Return (shard_numel, pieces): the size of a shard, and this rank's part of each parameter.

    numels: number of elements of each parameter. The parameters follow one another in flat
    memory, and the last one is followed by the least padding that makes world_size equal shards
    possible. Rank 0 owns the first shard.
    pieces: a list of (number, begin, end), in the order of the parameters. This rank's shard
    contains the elements begin to end − 1 of the flattened parameter `number`. Leave out
    parameters that have no element in this shard. Padding belongs to no parameter.
    """
    # 1. How large is a shard? Where in flat memory does this rank's shard begin and end?
    # 2. For each parameter, which elements fall between these two positions?
    ### BEGIN SOLUTION
    shard_numel = -(-sum(numels) // world_size)
    first, last = rank * shard_numel, (rank + 1) * shard_numel
    pieces, start = [], 0
    for number, numel in enumerate(numels):
        begin, end = max(first - start, 0), min(last - start, numel)
        if begin < end:
            pieces.append((number, begin, end))
        start += numel
    return shard_numel, pieces
    ### END SOLUTION
