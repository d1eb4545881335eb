"""A layer of experts of which each token visits two, in two implementations with equal results: a loop, and one batch
for all.

Shazeer et al., Outrageously Large Neural Networks, 2017; Fedus et al., Switch Transformers, 2022 (capacity); Jiang et
al., Mixtral of Experts, 2024 (SwiGLU experts, two of eight). T tokens, E experts, k = 2 of them per token, width W.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.transformer.lab01.ranges import named

ACTIVE = 2  # k, the experts that a token visits


class Experts(nn.Module):
    """(…, W) → (…, W): for each token, Σ gate · down(silu(gate(x)) · up(x)) over the two experts that a router prefers.
    The softmax over these two gives the gates. The parts are marked "router", "dispatch", "experts" and "combine".

    hidden: width inside an expert. way: "looped" or "batched". capacity: rows per expert in `batched`; if an expert has
    none left, it adds nothing for that token (Switch). By default as many as there are tokens, which always suffices;
    the mean is k · T / E. Weights are drawn from N(0, 0.02²). ValueError for another way.
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
        """Return (T, W) → (gates, chosen), (T, k) each: the chosen experts, and the factors of their outputs."""
        logits, chosen = self.router(tokens).float().topk(ACTIVE)
        return logits.softmax(-1).to(tokens.dtype), chosen


def looped(block: Experts, tokens: Tensor) -> Tensor:
    """Run one expert after another, each on its own tokens. Their number decides a shape, so the CPU has to know it,
    and waits at each expert until the GPU has counted."""
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
    """Run all experts together, on equally many rows each; unused rows are zeros. Every shape is known in advance,
    and nothing waits for the GPU."""
    experts = len(block.gate)
    capacity = len(tokens) if block.capacity is None else block.capacity
    with named("router"):
        gates, chosen = block.route(tokens)
    with named("dispatch"):
        expert = chosen.flatten()
        visits = (expert[:, None] == torch.arange(experts, device=expert.device)).long()
        place = ((visits.cumsum(0) - 1) * visits).sum(1)  # how many earlier tokens chose the same expert
        fits = place < capacity
        row = torch.where(fits, expert * capacity + place, experts * capacity)  # the last row collects the rest
        rows = tokens.new_zeros(experts * capacity + 1, tokens.shape[1])
        rows = rows.index_copy(0, row, tokens.repeat_interleave(ACTIVE, 0))[:-1].view(experts, capacity, -1)
    with named("experts"):
        rows = torch.bmm(F.silu(torch.bmm(rows, block.gate)) * torch.bmm(rows, block.up), block.down)
    with named("combine"):
        answers = rows.flatten(0, 1)[row.clamp(max=experts * capacity - 1)]
        return (answers.view(*chosen.shape, -1) * (gates * fits.view_as(gates))[..., None]).sum(1)


WAYS = {"looped": looped, "batched": batched}
