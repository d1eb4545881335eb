"""Lab 09, exercise 2: equal shards, wherever parameters begin and end."""


def shard_pieces(numels, world_size, rank):
    """(shard_numel, pieces): how large a shard is, and what of each parameter lies in this rank's.

    numels: the parameters' numbers of elements. They lie one behind the other in flat memory, with
    as little padding behind the last as makes world_size equal shards of it: rank 0 has the first.
    pieces: a list of (number, begin, end), in the order of the parameters: the elements from begin
    to end − 1 of parameter `number`, flattened, lie in this rank's shard. A parameter of which
    nothing lies there is not in the list. Padding belongs to no parameter.
    """
    # 1. How large is a shard? Where in flat memory does this rank's begin, and where does it end?
    # 2. Of each parameter: which of its elements lie between the two?
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
