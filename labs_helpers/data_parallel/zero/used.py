"""Find which parameters received a gradient, if steps do not use all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.collectives import FlatCommunication


def note_used(buckets: Sequence[Bucket], group: FlatCommunication, ask: bool) -> None:
    """Set `used` in the buckets, identically on all ranks.

    With `ask`, a parameter counts if any rank has used it; else all trained parameters count. Asking costs an
    all-reduce of one byte per parameter, and the host waits for it, because the result decides which gradients the
    optimizer gets.
    """
    if not ask:
        for bucket in buckets:
            bucket.used = [p.requires_grad for p in bucket.parameters]
        return
    mine = [used for bucket in buckets for used in bucket.used]
    flags = torch.tensor(mine, dtype=torch.uint8, device=group.device)
    agreed = iter(group.all_reduce(flags, "max").tolist())
    for bucket in buckets:
        bucket.used = [bool(next(agreed)) for _ in bucket.parameters]
