"""Lab 09, exercise 9: a checkpoint for any number of ranks."""

import torch
import torch.distributed as dist


def checkpoint(shard, optimizer, numel, group):
    """Return (save, load), which store and restore a state on any number of ranks.

    shard: an nn.Parameter of (n,), this rank's part of the flattened parameters. These have
    `numel` elements across all ranks of `group`, with padding at the end. optimizer: an optimizer
    from torch.optim over [shard].
    save() returns {"parameters": (numel,), "optimizer": {name: value}} on every rank. Its
    optimizer entries are those of optimizer.state[shard]: gathered if they have one number per
    element, copied otherwise (Adam's step). The result has no padding and shares no memory with
    tensors that training goes on to change.
    load(state) sets shard and optimizer.state[shard] from a state saved on any number of ranks.
    Padding is 0, and nothing shares memory with the state.
    """
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    ### END SOLUTION

    def save():
        # 1. Which tensors must you gather from all ranks? Which entries can you copy?
        ### BEGIN SOLUTION
        def gather(part):
            whole = part.new_empty(size * part.numel())
            dist.all_gather_into_tensor(whole, part.detach(), group=group)
            return whole[:numel].clone()

        state = {
            name: gather(value) if value.shape == shard.shape else value.clone()
            for name, value in optimizer.state[shard].items()
        }
        return {"parameters": gather(shard), "optimizer": state}
        ### END SOLUTION

    def load(state):
        # 2. Take this rank's part of each tensor, padded for the present number of ranks.
        ### BEGIN SOLUTION
        def part(whole):
            padded = torch.nn.functional.pad(whole, (0, size * shard.numel() - numel))
            return padded.chunk(size)[rank].clone()

        shard.data.copy_(part(state["parameters"]))
        optimizer.state[shard] = {
            name: part(value) if value.ndim == 1 else value.clone()
            for name, value in state["optimizer"].items()
        }
        ### END SOLUTION

    return save, load
