"""Compare a fully sharded layer with flash_attention, over gloo on CPUs, with one process. Run by torchrun."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

from labs_helpers.launch.leave import leave
from labs_helpers.measure.machine import prepare_triton


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x):
        from labs_helpers.attention import flash_attention

        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
        return self.out(flash_attention(q, k, v, causal=True).transpose(1, 2).flatten(2))


def main():
    prepare_triton()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x, whole, sharded = torch.randn(ranks, 9, 32), Layer(), Layer()
    sharded.load_state_dict(whole.state_dict())
    fully_shard(sharded, mesh=dist.init_device_mesh("cpu", (ranks,)))
    whole(x).square().mean().backward()
    for call in (sharded, torch.compile(sharded, backend="aot_eager")):
        sharded.zero_grad()
        call(x[rank : rank + 1]).square().mean().backward()
        for wanted, found in zip(whole.parameters(), sharded.parameters(), strict=True):
            torch.testing.assert_close(found.grad.full_tensor(), wanted.grad)
    print(f"rank {rank} equals one process")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    leave()
