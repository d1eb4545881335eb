"""Accept or replace proposed tokens, so that the result has exactly the target's distribution.

Leviathan et al., Fast inference from transformers via speculative decoding, 2023; Chen et al., Accelerating large
language model decoding with speculative sampling, 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.transformer.sampling import inverse


def accept(p: Tensor, q: Tensor, proposed: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return (tokens, accepted): (B, K + 1), of which the first accepted + 1 count, and (B,).

    p: (B, K + 1, V), the target's distributions. q: (B, K, V), the draft's, from which the tokens `proposed`, (B, K),
    were drawn. A proposal is accepted with the probability min(1, p / q). The first that is not is replaced by a draw
    from max(0, p − q), normalized, and after K accepted ones comes a draw from p. A row of zeros in q ends a sequence's
    proposals. u: (B, K), and v: (B, K + 1), uniform numbers below 1, of the acceptance and of these draws.
    """
    K = proposed.shape[1]
    of_target, of_draft = (x[:, :K].gather(2, proposed[..., None])[..., 0] for x in (p, q))
    right = (u * of_draft < of_target) & (of_draft > 0)
    accepted = right.long().cumprod(1).sum(1)
    rest = torch.cat([(p[:, :K] - q).clamp(min=0), p[:, K:]], 1)
    # Where p = q, at most a rounding rejects a proposal, and nothing is left to draw from.
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, p)
    drawn = inverse(rest, v)
    tokens = torch.cat([proposed, drawn[:, -1:]], 1)
    return tokens.scatter(1, accepted[:, None], drawn.gather(1, accepted[:, None])), accepted
