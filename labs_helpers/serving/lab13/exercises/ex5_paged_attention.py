"""Lab 13, exercise 5: attention that gathers keys and values through a block table."""

import torch


def paged_attention(q, k, v, tables, lengths):
    """Return the attention of one position per sequence, (B, H, D), with a paged cache.

    q: (B, H, D), rotated. k and v: (blocks, Hkv, size, D), the cache; keys are rotated. tables:
    int64 (B, most), the blocks of each sequence in the order of its positions; a row that needs
    fewer is filled up with block 0, which belongs to another sequence. lengths: int64 (B,), how
    many positions of each sequence count, 1 or more, up to and including the new one; the rest
    of a block holds leftovers. Query head h uses key and value head h // (H / Hkv). The scores
    are q · key / √D.
    """
    # 1. Gather: k[tables] is (B, most, Hkv, size, D). Turn it into (B, Hkv, most · size, D).
    # 2. Let the query heads of a group share their key and value head.
    # 3. Compute the scores, (B, H, most · size). Which of them must have no weight?
    ### BEGIN SOLUTION
    group = q.shape[1] // k.shape[1]
    keys, values = (
        cache[tables].transpose(1, 2).flatten(2, 3).repeat_interleave(group, dim=1)
        for cache in (k, v)
    )
    scores = torch.einsum("bhd,bhld->bhl", q, keys) / q.shape[2] ** 0.5
    beyond = torch.arange(keys.shape[2]) >= lengths[:, None]
    weights = scores.masked_fill(beyond[:, None], -torch.inf).softmax(dim=2)
    return torch.einsum("bhl,bhld->bhd", weights, values)
    ### END SOLUTION
