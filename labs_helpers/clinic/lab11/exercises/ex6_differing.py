"""Lab 11, exercise 6: the parameters that are not the same on all ranks."""

import zlib

import torch


def checksum(x):
    """Return a whole number from 0 to 2**32 − 1 that depends on every bit of a tensor.

    Equal bits give equal numbers. Other bits give another number, except in one of 4 billion cases.
    """
    data = x.cpu().contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(data.numpy())


def differing(parameters, group):
    """Find replicas that diverge: return the sorted list of the names that differ between ranks.

    parameters: name → tensor, such as model.state_dict(). Every rank has the same names, shapes and
    dtypes, in the same order; the dtypes are float32, float16, bfloat16 and int64. Tensors may have
    no elements or no dimensions, and need not be contiguous. Do not change them. A parameter
    differs if its bits are not the same on all ranks: 0.0 differs from −0.0, and a NaN is the same
    as a NaN with the same bits. Any of the ranks may be the one that differs.
    group: the ranks, a Communication; group.rank and group.size are numbers. Every rank calls this
    function and must return the same list. group.all_gather(x) returns all ranks' x, of shape
    (n,), joined in the order of the ranks, (group.size · n,); it keeps the dtype. There may be one
    rank. Use at most two collectives in all, whatever the number of parameters, and send at most 16
    bytes per parameter: sum(group.payload.values()), which counts the gathered tensor, is at most
    16 · len(parameters) · group.size.
    """
    # 1. What does each rank send, and in which dtype?
    # 2. Whose checksum of which parameter is at which place of the gathered tensor?
    ### BEGIN SOLUTION
    mine = torch.tensor([checksum(x) for x in parameters.values()], dtype=torch.int64)
    by_rank = group.all_gather(mine).view(group.size, len(parameters))
    differs = (by_rank != by_rank[0]).any(0)
    return sorted(name for name, differ in zip(parameters, differs, strict=True) if differ)
    ### END SOLUTION
