"""Lab 09, exercise 9: a checkpoint for any number of ranks."""

import torch
import torch.distributed as dist


def checkpoint(shard, optimizer, numel, group):
    """(save, load): a state that does not know on how many ranks it was made.

    shard: an nn.Parameter of (n,), this rank's part of all parameters one behind the other: `numel`
    elements on all ranks of `group` together, and padding behind them. optimizer: one of
    torch.optim over [shard].
    save() returns on every rank {"parameters": (numel,), "optimizer": {name: value}}: the entries
    of optimizer.state[shard], whole where they have a number per element, and else (Adam's step)
    as they are. No padding, and nothing shares memory with what goes on training.
    load(state) sets shard and optimizer.state[shard] from a state that any number of ranks
    has saved; where there is padding it is 0. It shares no memory with the state.
    """
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    ### END SOLUTION

    def save():
        # 1. What is whole when all ranks' parts lie one behind the other? Which entries are parts?
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
        # 2. This rank's part of each, with as much padding as this number of ranks needs.
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
