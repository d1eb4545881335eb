"""Lab 13, exercise 2: the attention of one new position, with the keys and values of a cache."""

import torch


def attend_cached(x, w_q, w_k, w_v, k, v, length, rotate):
    """Store the key and value of one new position in the cache, and return its attention, (H, D).

    x: (width,), the features of the new position, whose number is `length` (they count from 0).
    w_q: (H, D, width); w_k and w_v: (Hkv, D, width). k and v: (Hkv, capacity, D), the cache. Its
    positions 0 to length − 1 are filled, with rotated keys; the later ones hold leftovers.
    rotate(heads, position): rotary embedding of heads, (…, D), at a position. Queries and keys
    are rotated. Query head h uses key and value head h // (H / Hkv). The scores are q · key / √D.
    """
    # 1. Project x: (H, D) queries, (Hkv, D) keys and values. Rotate queries and keys.
    # 2. Store the new key and value in the cache.
    # 3. Attend to the positions that exist, the new one included, and to no other.
    ### BEGIN SOLUTION
    q, key, value = rotate(w_q @ x, length), rotate(w_k @ x, length), w_v @ x
    k[:, length], v[:, length] = key, value
    group = len(w_q) // len(w_k)
    keys = k[:, : length + 1].repeat_interleave(group, dim=0)
    values = v[:, : length + 1].repeat_interleave(group, dim=0)
    scores = torch.einsum("hd,hld->hl", q, keys) / q.shape[1] ** 0.5
    return torch.einsum("hl,hld->hd", scores.softmax(dim=1), values)
    ### END SOLUTION
