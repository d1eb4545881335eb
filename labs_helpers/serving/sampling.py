"""Choose each row's next token with its own temperature, top-k, top-p and uniform number: plain PyTorch, any device."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.transformer.sampling import inverse


def choose(logits: Tensor, u: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Return a token per row, (B,) of int64, drawn from `probabilities` with the numbers u, (B,), below 1."""
    return inverse(probabilities(logits, temperature, top_k, top_p), u)


def probabilities(
    logits: Tensor, temperature: Tensor, top_k: Tensor | None = None, top_p: Tensor | None = None
) -> Tensor:
    """Return the distribution of each row's next token, (B, V), in float32 or, for such logits, float64.

    logits: (B, V). temperature, top_k, top_p: (B,) as in `SamplingParameters`; top_k 0 stands for None. Without
    top_k and top_p, nothing is sorted. With temperature 0, the first of the largest logits has the probability 1.
    """
    wide = logits if logits.dtype == torch.float64 else logits.float()
    hot = torch.where(temperature > 0, temperature, 1.0)[:, None]
    if top_k is None or top_p is None:
        p = torch.softmax(wide / hot, -1)
    else:
        in_order = wide.sort(-1, descending=True).values
        count = torch.where(top_k > 0, top_k, wide.shape[-1]).clamp(max=wide.shape[-1]).long()
        least = in_order.gather(-1, count[:, None] - 1)
        p = torch.softmax((in_order / hot).masked_fill(in_order < least, -torch.inf), -1)
        enough = p.cumsum(-1) >= top_p[:, None]
        enough[:, -1] = True  # the sum may round to less than 1
        least = in_order.gather(-1, enough.int().argmax(-1, keepdim=True)).maximum(least)
        p = torch.softmax((wide / hot).masked_fill(wide < least, -torch.inf), -1)
    greedy = torch.zeros_like(p).scatter_(-1, wide.argmax(-1, keepdim=True), 1.0)
    return torch.where(temperature[:, None] > 0, p, greedy)
