"""A block of experts of which each token visits two, in two ways that give the same: a loop, and one batch for all.

Shazeer et al., Outrageously Large Neural Networks, 2017; Fedus et al., Switch Transformers, 2022 (capacity); Jiang et
al., Mixtral of Experts, 2024 (SwiGLU experts, two of eight). T tokens, E experts, k = 2 of them a token, W wide.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.transformer.lab01.ranges import named

ACTIVE = 2  # experts a token visits, k


class Experts(nn.Module):
    """(…, W) → (…, W): for each token Σ gate · down(silu(gate(x)) · up(x)) over the two experts that a router prefers,
    whose softmax over those two are the gates. Parts have the ranges "router", "dispatch", "experts" and "combine".

    hidden: width inside an expert. way: "looped" or "batched". capacity: rows that `batched` has for each expert; a
    token for which there is none left gets nothing from that expert (Switch). By default as many as there are tokens,
    which is always enough; the mean is k · T / E. Weights are drawn from N(0, 0.02²). ValueError for another way.
    """

    def __init__(self, width: int, hidden: int, experts: int, way: str = "looped", capacity: int | None = None) -> None:
        super().__init__()
        if way not in WAYS:
            raise ValueError(f"way is {way!r}; it may be {', '.join(map(repr, WAYS))}")
        self.way, self.capacity = way, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.gate = nn.Parameter(torch.empty(experts, width, hidden))
        self.up = nn.Parameter(torch.empty(experts, width, hidden))
        self.down = nn.Parameter(torch.empty(experts, hidden, width))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.normal_(std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return WAYS[self.way](self, x.flatten(0, -2)).view(x.shape)

    def route(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(T, W) → (gates, chosen), (T, k) each: the experts' numbers, and what their answers are multiplied by."""
        logits, chosen = self.router(tokens).float().topk(ACTIVE)
        return logits.softmax(-1).to(tokens.dtype), chosen


def looped(block: Experts, tokens: Tensor) -> Tensor:
    """One expert after another, each on its own tokens. How many they are decides a shape, so that the CPU has to know
    it: at each expert it waits until the GPU has counted."""
    with named("router"):
        gates, chosen = block.route(tokens)
        out = torch.zeros_like(tokens)
    for expert in range(len(block.gate)):
        with named("dispatch"):
            token, choice = torch.where(chosen == expert)
            rows = tokens[token]
        with named("experts"):
            rows = (F.silu(rows @ block.gate[expert]) * (rows @ block.up[expert])) @ block.down[expert]
        with named("combine"):
            out = out.index_add(0, token, rows * gates[token, choice, None])
    return out


def batched(block: Experts, tokens: Tensor) -> Tensor:
    """All experts at once, on as many rows each, of which those that no token takes are zeros: every shape is known
    beforehand, and nothing waits for the GPU."""
    experts = len(block.gate)
    capacity = len(tokens) if block.capacity is None else block.capacity
    with named("router"):
        gates, chosen = block.route(tokens)
    with named("dispatch"):
        expert = chosen.flatten()
        visits = (expert[:, None] == torch.arange(experts, device=expert.device)).long()
        place = ((visits.cumsum(0) - 1) * visits).sum(1)  # how many before it chose the same expert
        fits = place < capacity
        row = torch.where(fits, expert * capacity + place, experts * capacity)  # the last row takes what does not fit
        rows = tokens.new_zeros(experts * capacity + 1, tokens.shape[1])
        rows = rows.index_copy(0, row, tokens.repeat_interleave(ACTIVE, 0))[:-1].view(experts, capacity, -1)
    with named("experts"):
        rows = torch.bmm(F.silu(torch.bmm(rows, block.gate)) * torch.bmm(rows, block.up), block.down)
    with named("combine"):
        answers = rows.flatten(0, 1)[row.clamp(max=experts * capacity - 1)]
        return (answers.view(*chosen.shape, -1) * (gates * fits.view_as(gates))[..., None]).sum(1)


WAYS = {"looped": looped, "batched": batched}
