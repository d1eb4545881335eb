"""The number of tokens per rank that hides a message, in closed form.

Both times grow with the model's parameters Ψ, so Ψ cancels. A message of b bytes per parameter takes

    b Ψ · factor / busbw,   factor = (N − 1) / N for an all-gather or a reduce-scatter, 2 (N − 1) / N for an all-reduce,

with NCCL's bus bandwidth. Compute of f FLOPs per parameter and token takes f Ψ T / (MFU · C). The message hides from

    T = b · factor / f · MFU · C / busbw   tokens per rank.

With 16-bit messages, three pairs give the same MFU · C / busbw · (N − 1) / N: gradients all-reduced during the backward
pass (b = 2, factor doubled, f = 4), parameters gathered during the forward pass (2, 2), and ZeRO-3's gather and
reduce-scatter during the backward pass (2 + 2, 4). The formula ignores the latency of messages and the FLOPs of
attention, which grow with the length.
"""

from __future__ import annotations


def tokens_to_hide(
    nbytes: float, flops: float, achieved: float, busbw: float, ranks: int | None = None, all_reduce: bool = False
) -> float:
    """Return the tokens per rank from which a message of `nbytes` per parameter hides behind compute.

    flops: per parameter and token. achieved: FLOP/s of a rank, MFU · peak. busbw: bytes/s, as NCCL defines it. ranks:
    None for the limit of many. all_reduce: otherwise the message is an all-gather, a reduce-scatter, or several of them
    with their bytes added. Raise ValueError for values that are not positive.
    """
    if min(nbytes, flops, achieved, busbw, 1 if ranks is None else ranks) <= 0:
        raise ValueError(
            f"nbytes {nbytes}, flops {flops}, achieved {achieved}, busbw "
            f"{busbw}, and ranks {ranks} must all be positive"
        )
    share = 1.0 if ranks is None else (ranks - 1) / ranks
    return nbytes * share * (1 + all_reduce) / flops * achieved / busbw
