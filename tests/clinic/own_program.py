"""A training program that knows nothing of the clinic, for test_attach.py."""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(4)])
wrapped, optimizer = DistributedDataParallel(model), torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(320, 32)), batch_size=32)
for (x,) in loader:
    wrapped(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if "reads" in sys.argv:
        norms = [p.norm().item() for p in model.parameters()]
    if "hangs" in sys.argv:
        time.sleep(600)
dist.destroy_process_group()
