"""The stretch of lab 01: which tensors of a layer to keep for the backward pass, and which to recompute (Korthikanti
et al., Reducing Activation Recomputation in Large Transformer Models, 2022)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import compress, product
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.transformer.config import SIZES, TransformerConfig

WAYS = Curves({"whole layers, or none of them": ("aside", ""), "ours": ("ours", ""), "yours": ("yours", "")})


class Kept(NamedTuple):
    """A tensor that a layer may keep: its bytes, and the µs that recomputing it takes."""

    nbytes: int
    us: float


Tensors = Mapping[str, Kept]


def layer_tensors(config: TransformerConfig, batch: int, length: int, gpu: str = "H200") -> dict[str, Kept]:
    """Return the tensors that a layer with plain attention keeps in bfloat16, by the table of section 4. µs: the longer
    of the times at the GPU's two roofs; the operands are read once and the tensor is written once."""
    sheet, tokens, W, F = DATASHEET[gpu], batch * length, config.width, config.hidden
    wide, mlp, scores = tokens * W, tokens * F, batch * config.heads * length**2
    pairs = 2 * tokens * length * W  # FLOPs of a product of all queries and keys

    def made(nbytes: int, read: int, flops: int) -> Kept:
        return Kept(nbytes, 1e6 * max((read + nbytes) / sheet.bandwidth, flops / sheet.fp16_flops))

    norm = made(8 * wide, 2 * wide, 4 * wide)
    return {
        "attention's norm": norm,
        "q, k and v": made(6 * wide, 2 * wide + 6 * W * W, 6 * tokens * W * W),
        "mask": made(length**2, 0, 0),
        "probabilities": made(4 * scores, 4 * wide, pairs),
        "probabilities, rounded": made(2 * scores, 4 * scores, 0),
        "attention's output": made(2 * wide, 2 * scores + 2 * wide, pairs),
        "the MLP's norm": norm,
        "gate": made(2 * mlp, 2 * wide + 2 * W * F, 2 * tokens * W * F),
        "silu(gate)": made(2 * mlp, 2 * mlp, 4 * mlp),
        "up": made(2 * mlp, 2 * wide + 2 * W * F, 2 * tokens * W * F),
        "silu(gate) · up": made(2 * mlp, 4 * mlp, mlp),
    }


def cheapest(tensors: Tensors, budget: int) -> list[str]:
    """Return the names to keep: of all 2ⁿ choices within `budget` bytes, the one that leaves the fewest µs."""
    choices = np.array(list(product((False, True), repeat=len(tensors))))
    nbytes, us = np.array([tuple(kept) for kept in tensors.values()]).T
    saved = np.where(choices @ nbytes <= budget, choices @ us, -1.0)
    return list(compress(tensors, choices[saved.argmax()]))


def again_us(tensors: Tensors, kept: Collection[str]) -> float:
    """Return the µs that recomputing all other tensors takes."""
    return sum(tensor.us for name, tensor in tensors.items() if name not in kept)


def draw_stretch(student: Callable, batch: int = 4, length: int = 1024) -> Figure:
    """Draw a layer's µs of recomputation against the GB that it may keep: for whole layers checkpointed or not, for
    ours, and for student(tensors, budget) if it answers."""
    config = SIZES["1b"]
    tensors = layer_tensors(config, batch, length)
    whole, every = sum(tensor.nbytes for tensor in tensors.values()), again_us(tensors, ())
    budgets = [int(whole * share) for share in np.linspace(0, 1, 41)]
    ours = [again_us(tensors, cheapest(tensors, budget)) for budget in budgets]
    half = ours[len(budgets) // 2]
    title = f"Recomputing the right half of a layer takes {half / every:.0%} of the time"
    setting = f"a layer of 1b, {batch} × {length:,} tokens, at an H200's roofs"
    fig, ax = figures.new(f"{title}\n{setting}", 6.4, 3.1)
    gigabytes = np.array(budgets) / 1e9
    WAYS.plot(ax, "whole layers, or none of them", (0, whole / 1e9), (every, 0), linestyle=":")
    WAYS.plot(ax, "ours", gigabytes, ours, drawstyle="steps-post")
    if yours := _answers(student, tensors, budgets):
        WAYS.plot(ax, "yours", gigabytes, yours, drawstyle="steps-post", linestyle="--")
    ax.set(xlabel="GB that the layer may keep", ylabel="µs to recompute the rest", ylim=(0, None))
    ax.legend()
    return fig


def _answers(student: Callable, tensors: Tensors, budgets: list[int]) -> list[float]:
    """Return the student's µs for each budget. Without an answer, or if it keeps too much, print why and return []."""
    found = []
    for budget in budgets:
        kept = student(dict(tensors), budget)
        if kept is None:
            print("○ yours is still open")
            return []
        if unknown := set(kept) - set(tensors):
            print(f"✗ yours is left out: {', '.join(map(repr, sorted(unknown)))}: no tensor has that name")
            return []
        if (nbytes := sum(tensors[name].nbytes for name in set(kept))) > budget:
            print(f"✗ yours is left out: it keeps {nbytes / 1e9:.3f} GB of a budget of {budget / 1e9:.3f}")
            return []
        found.append(again_us(tensors, kept))
    return found
