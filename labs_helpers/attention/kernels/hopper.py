"""The Hopper kernels of attention: the operands that they accept, and their configurations."""

from __future__ import annotations

import torch

from labs_helpers.attention.kernels.hopper_launch import (
    BACKWARD_BLOCK_N,
    BackwardConfig,
    BackwardLaunch,
    ForwardConfig,
    ForwardLaunch,
    multiprocessors,
    unreadable,
)
from labs_helpers.measure.machine import this_machine

SMALL_TILES = 1.07  # time per FLOP with two consumers over that with three, for a head dim of 64 and long sequences


def forward_config(shape: tuple[int, int, int, int], Lk: int, causal: bool, multiprocessors: int) -> ForwardConfig:
    """Return the fastest configuration measured on an H200 (Triton 3.6.0, float16). shape: q's, (B, H, Lq, D).

    Short sequences spend most of their time at the start and end of tiles, where a program's products wait for its
    softmax. If there are enough tiles for both, two programs per SM fill each other's gaps. With small blocks, a mask
    wastes less work. For longer sequences and a head dim up to 64, the time model chooses between tiles of 128 and 192
    rows.
    """
    B, H, Lq, D = shape
    if D > 64:
        if causal and Lk < 1024:
            return ForwardConfig(CONSUMERS=2, BLOCK_N=64, STAGES=4, BY_TURNS=False)
        return ForwardConfig(CONSUMERS=2, BLOCK_N=128, STAGES=2, BY_TURNS=False)
    enough = -(-Lq // 128) * B * H * 512 >= multiprocessors * Lk
    if Lk <= (2048 if causal else 256) and enough:
        return ForwardConfig(CONSUMERS=2, BLOCK_N=64, STAGES=3, BY_TURNS=False, PER_SM=2)
    if causal and Lk <= 1024:
        return ForwardConfig(CONSUMERS=2, BLOCK_N=64, STAGES=3, BY_TURNS=False)
    times = {c: forward_time(c, B, H, Lq, Lk, causal, multiprocessors) for c in (3, 2)}
    if times[2] * SMALL_TILES < times[3]:
        return ForwardConfig(CONSUMERS=2, BLOCK_N=128, STAGES=4, BY_TURNS=True)
    return ForwardConfig(CONSUMERS=3, BLOCK_N=128, STAGES=2, BY_TURNS=True)


def forward_time(consumers: int, B: int, H: int, Lq: int, Lk: int, causal: bool, multiprocessors: int) -> float:
    """Predict the time until the last SM is done, in units of one consumer's time for 64 rows and 128 keys."""
    rows = 64 * consumers
    tiles_m = -(-Lq // rows)
    if not causal:
        return -(-tiles_m * B * H // multiprocessors) * consumers * -(-Lk // 128)
    # Tiles are drawn longest first, so all SMs end together unless a single tile takes longer.
    tiles = [consumers * max(-(-min(Lk, row * rows + Lk - Lq) // 128), 1) for row in range(1, tiles_m + 1)]
    return max(tiles[-1], sum(tiles) * B * H / multiprocessors)


def backward_config(D: int, Lk: int, causal: bool) -> BackwardConfig:
    """Return the fastest configuration measured on an H200.

    A step takes 128 queries if nothing is masked. Otherwise it takes 64, because a mask wastes less work in small
    blocks. At a head dim of 128, there are not enough registers for 128 queries.
    """
    whole = not causal and Lk % BACKWARD_BLOCK_N == 0
    return BackwardConfig(BLOCK_M=128 if D <= 64 and whole else 64, STAGES=2)


def why_not(q, k, v, architecture: str | None) -> str | None:
    """Return why the Hopper kernels cannot process these valid operands on this architecture, or None if they can."""
    if architecture != "sm_90":
        return f"the Hopper kernels need sm_90, this is {architecture or 'the interpreter'}"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"the Hopper kernels multiply 16-bit floats, not {q.dtype}"
    if q.shape[-1] <= 32 or q.shape[-1] % 8:
        return f"head dim {q.shape[-1]}: the Hopper kernels take multiples of 8 from 40 to 128"
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if reason := unreadable(tensor):
            return f"{name}'s {reason}"
    if not gluon_fits():
        return f"the Hopper kernels need the Gluon of Triton 3.6 or 3.7, this is {this_machine().triton}"
    return None


def gluon_fits() -> bool:
    """Return whether this Triton's Gluon fits the kernels; Gluon is experimental and differs in Triton 3.9."""
    return (this_machine().triton or "").startswith(("3.6.", "3.7."))


def forward_launch(q, k, v, causal: bool, config: ForwardConfig | None = None) -> ForwardLaunch:
    """Return a function (q, k, v, scale) → (o, lse) for operands like these, which `why_not` accepts."""
    if config is None:
        config = forward_config(tuple(q.shape), k.shape[2], causal, multiprocessors(q.device.index))
    return ForwardLaunch(q, k, v, causal, config)


def backward_launch(q, k, v, o, do, causal: bool, config: BackwardConfig | None = None) -> BackwardLaunch:
    """Return a function (q, k, v, o, lse, do, scale) → (dq, dk, dv) for operands with these shapes and strides."""
    return BackwardLaunch(q, k, v, o, do, causal, config or backward_config(q.shape[-1], k.shape[2], causal))


def forward(q, k, v, causal: bool, scale: float, config: ForwardConfig | None = None):
    """Return (o, lse) from a new launch of the Hopper kernel: o contiguous, lse, (B, H, Lq), in float32."""
    return forward_launch(q, k, v, causal, config)(q, k, v, scale)


def backward(
    q, k, v, o, lse, do, causal: bool, scale: float, needs=(True, True, True), config: BackwardConfig | None = None
):
    """Return (dq, dk, dv) from a new launch of the Hopper kernel, which always computes all three."""
    return backward_launch(q, k, v, o, do, causal, config)(q, k, v, o, lse, do, scale)
