"""How many tokens each rank has to compute so that a message hides behind them, in closed form.

Both sides grow with the model's parameters Ψ, so Ψ cancels. A message of b bytes per parameter takes

    b Ψ · factor / busbw,   factor = (N − 1) / N for an all-gather or a reduce-scatter, 2 (N − 1) / N for an all-reduce,

with NCCL's bus bandwidth; compute of f FLOPs per parameter and token takes f Ψ T / (MFU · C). The message hides from

    T = b · factor / f · MFU · C / busbw   tokens per rank on.

In 16 bits three pairs give the same MFU · C / busbw · (N − 1) / N: gradients all-reduced beside the backward pass
(b = 2, factor doubled, f = 4), parameters gathered beside the forward pass (2, 2), and ZeRO-3's gather and
reduce-scatter beside the backward pass (2 + 2, 4). Attention's FLOPs, which grow with the length, are left out, and so
is the latency of each message.
"""

from __future__ import annotations


def tokens_to_hide(
    nbytes: float, flops: float, achieved: float, busbw: float, ranks: int | None = None, all_reduce: bool = False
) -> float:
    """Tokens per rank from which a message of `nbytes` per parameter hides behind `flops` per parameter and token.

    achieved: FLOP/s of a rank, MFU · peak. busbw: bytes/s, NCCL's. ranks: None for very many. all_reduce: else the
    message is an all-gather, a reduce-scatter, or several of them, with their bytes added up.
    ValueError for anything that is not positive.
    """
    if min(nbytes, flops, achieved, busbw, 1 if ranks is None else ranks) <= 0:
        raise ValueError(f"nbytes {nbytes}, flops {flops}, achieved {achieved}, busbw {busbw}, ranks {ranks}: positive")
    share = 1.0 if ranks is None else (ranks - 1) / ranks
    return nbytes * share * (1 + all_reduce) / flops * achieved / busbw
