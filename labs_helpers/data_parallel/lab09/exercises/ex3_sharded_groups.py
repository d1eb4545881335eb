"""Lab 09, exercise 3: parameter groups that update one shard."""

from torch import nn


def sharded_groups(shard, pieces, groups):
    """Return (tensors, param_groups): this rank's pieces as parameters, and groups of them.

    shard: (shard_numel,), in which the pieces follow one another. pieces: a list of (number,
    begin, end) from shard_pieces. groups: the groups of the whole model, a list of dicts, each
    with a list of parameter numbers under "params" and with options such as "weight_decay".
    tensors: one nn.Parameter per piece, in order. Each shares the shard's memory, so that
    updating it updates the shard. param_groups: one new dict per group, in order, with the same
    options; its "params" are the tensors of those parameters that have a piece on this rank, and
    may be empty. Don't change groups.
    """
    # 1. Where in the shard does each piece begin? nn.Parameter(view) shares the view's memory.
    # 2. Map each parameter number to its tensor, and build the groups from this map.
    ### BEGIN SOLUTION
    tensors, tensor_of, at = [], {}, 0
    for number, begin, end in pieces:
        tensors.append(nn.Parameter(shard[at : at + end - begin]))
        tensor_of[number] = tensors[-1]
        at += end - begin
    param_groups = []
    for group in groups:
        mine = [tensor_of[number] for number in group["params"] if number in tensor_of]
        param_groups.append({**group, "params": mine})
    return tensors, param_groups
    ### END SOLUTION
