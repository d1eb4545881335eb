"""Which parameters have a gradient, where some are not used in every step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.collectives import FlatCommunication


def note_used(buckets: Sequence[Bucket], group: FlatCommunication, ask: bool) -> None:
    """Sets `used` in the buckets, the same on all ranks: with `ask` what any rank has used, else all that is trained.

    To ask costs an all-reduce of a byte per parameter, and the host's waiting for it: what the optimizer is given is
    decided there."""
    if not ask:
        for bucket in buckets:
            bucket.used = [p.requires_grad for p in bucket.parameters]
        return
    mine = [used for bucket in buckets for used in bucket.used]
    flags = torch.tensor(mine, dtype=torch.uint8, device=group.device)
    agreed = iter(group.all_reduce(flags, "max").tolist())
    for bucket in buckets:
        bucket.used = [bool(next(agreed)) for _ in bucket.parameters]
