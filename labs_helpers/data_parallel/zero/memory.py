"""Count the bytes of model states that one rank holds, for comparison with the formula."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer

PARTS = ("parameters", "gradients", "optimizer")


def held_bytes(zero: ShardedOptimizer, device: str | None = None) -> dict[str, int]:
    """Return the bytes of memory behind the tensors of each of PARTS, including padding; shared memory counts once.

    device: a device type such as "cuda", to count only memory there. parameters: whole ones and shards, and those units
    of stage 3 that are gathered now. gradients: whole ones, shards, and the parameters' own. optimizer: its states, the
    master weights, and staging memory on the CPU. Excluded are buckets in flight and the float32 gradient that master
    weights need during step().
    """
    placed = {p for bucket in zero.buckets for p in bucket.parameters}
    seen: set[int] = set()

    def count(tensors: Sequence[Tensor | None]) -> int:
        total = 0
        for t in tensors:
            if t is None or (device is not None and t.device.type != device):
                continue
            storage = t.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                total += storage.nbytes()
        return total

    parameters: list[Tensor | None] = [t for bucket in zero.buckets for t in (bucket.whole, bucket.shard)]
    parameters += [p for p in zero.groups.names if p not in placed]
    gradients: list[Tensor | None] = [t for bucket in zero.buckets for t in (bucket.gradient, bucket.gradient_shard)]
    gradients += [p.grad for p in zero.groups.names]
    states: list[Tensor | None] = [t for bucket in zero.buckets for t in (bucket.owned.home, bucket.owned.staging)]
    states += [v for state in zero.optimizer.state.values() for v in state.values() if isinstance(v, Tensor)]
    return dict(zip(PARTS, map(count, (parameters, gradients, states)), strict=True))
