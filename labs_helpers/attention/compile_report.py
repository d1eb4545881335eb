"""The compile report of the portable attention kernels for every target."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from labs_helpers.attention.configs import DIRECTIONS, default_config
from labs_helpers.attention.kernels import portable
from labs_helpers.compile.ahead_of_time import TARGETS
from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.compile.report import Build, compile_report
from labs_helpers.measure.machine import this_machine

KERNELS = tuple(f"{name}_kernel" for name in ("attention_forward", *DIRECTIONS[1:]))


def compile_everywhere(
    targets: Iterable[str] = tuple(TARGETS),
    head_dims: Iterable[int] = (64, 128),
    dtype=torch.float16,
    causal: bool = True,
):
    """Return the compile report of KERNELS for each target and head dimension, with the target's configuration.

    See `compile.report.compile_report`; the column head_dim is added.

    Raises ValueError for an unknown target, and CompileError, which names kernel and target, if a build fails.
    """
    return compile_report(
        Build(launch.name, launch, target, {"head_dim": D})
        for target in targets
        for D in list(head_dims)
        for launch in _launches(D, dtype, causal, target)
    )


def _launches(D: int, dtype, causal: bool, target: str) -> list[Launch]:
    """Record the launches of one forward and backward pass over 1024 tokens without running them."""
    q, k, v, o = (torch.empty(1, 2, 1024, D, dtype=dtype, device=this_machine().device) for _ in range(4))
    lse = torch.empty(1, 2, 1024, device=q.device)
    forward, keys, queries = (default_config(direction, D, dtype, target) for direction in DIRECTIONS)
    with record_launches(run=False) as launches:
        portable.forward(q, k, v, causal, 0.125, forward)
        portable.backward(q, k, v, o, lse, o, causal, 0.125, key_value_config=keys, query_config=queries)
    return [launch for launch in launches if launch.name in KERNELS]
