"""Lab 09, exercise 3: what the optimizer of one rank is given."""

from torch import nn


def sharded_groups(shard, pieces, groups):
    """(tensors, param_groups): this rank's pieces as parameters, and as groups for torch.optim.

    shard: (shard_numel,), in which the pieces lie one behind the other. pieces: (number, begin,
    end) of each, as shard_pieces returns them. groups: as for a whole model, a list of dicts, with
    "params" a list of the parameters' numbers, and options like "weight_decay".
    tensors: an nn.Parameter for each piece, in order, on the shard's own memory: what an optimizer
    does to them is done to the shard. param_groups: for each of groups, in order, a new dict with
    its options, "params" being the tensors of those of its parameters that have a piece here.
    Some may be empty. groups stay as they are.
    """
    # 1. Where in the shard does each piece begin? nn.Parameter(view) shares the view's memory.
    # 2. Which tensor belongs to a parameter's number? Build the groups from it.
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
