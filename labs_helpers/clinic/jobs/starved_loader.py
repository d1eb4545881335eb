"""A job that waits for its data: each sequence lies in a compressed block, which is decompressed for it alone."""

import bz2

import torch

from labs_helpers.clinic.job import Job
from labs_helpers.clinic.training import Training


class Compressed(torch.utils.data.Dataset):
    """The same items, of which `per_block` are compressed together."""

    def __init__(self, whole, per_block):
        self.whole, self.per_block = whole, per_block
        size = per_block * whole.length
        raw = whole.data.numpy().tobytes()
        self.blocks = [bz2.compress(raw[start : start + size + 1]) for start in range(0, len(raw), size)]

    def __len__(self):
        return len(self.whole)

    def __getitem__(self, i):
        block, place = divmod(i, self.per_block)
        data = torch.frombuffer(bytearray(bz2.decompress(self.blocks[block])), dtype=torch.uint8)
        return type(self.whole)(data, self.whole.length)[place]


class StarvedLoader(Training):
    def data(self):
        return Compressed(super().data(), self.random.randrange(3_000, 6_000))


JOB = Job("starved loader", StarvedLoader, "data", slower=1.5)
