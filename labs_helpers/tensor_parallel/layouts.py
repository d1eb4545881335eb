"""Find the dp × tp layouts that a number of ranks and a transformer allow, and explain why others are impossible."""

from __future__ import annotations

import math
from typing import NamedTuple

from labs_helpers.transformer import TransformerConfig


class Layout(NamedTuple):
    """A layout of dp × tp ranks; why_not is empty if the layout is possible."""

    dp: int
    tp: int
    why_not: tuple[str, ...] = ()


def why_not(config: TransformerConfig, tp: int, length: int | None = None) -> tuple[str, ...]:
    """Return the reasons why `tp` ranks cannot share this transformer; empty if they can.

    length: tokens per sequence, to check if sequence parallelism splits it.
    """
    sizes = {
        "heads": config.heads,
        "kv_heads": config.key_value_heads,
        "hidden": config.hidden,
        "vocabulary": config.vocabulary,
    } | ({} if length is None else {"length": length})
    return tuple(f"tp {tp} does not divide {name} {size}" for name, size in sizes.items() if size % tp)


def layouts(ranks: int, config: TransformerConfig) -> list[Layout]:
    """Return a layout for every tp from 1 to `ranks`, possible or not. Raises ValueError for ranks below 1."""
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}, but has to be 1 or more")
    found = []
    for tp in range(1, ranks + 1):
        uneven = (f"tp {tp} does not divide {ranks} ranks",) if ranks % tp else ()
        found.append(Layout(ranks // tp, tp, uneven + why_not(config, tp)))
    return found


def check_layout(ranks: int, dp: int, tp: int, config: TransformerConfig, pp: int = 1) -> None:
    """Raise ValueError, with the possible layouts, if dp × pp × tp ranks cannot train this transformer.

    pp: the pipeline stages, of which the messages speak only if there are several.
    """
    sizes = {"dp": dp, "tp": tp} if pp == 1 else {"dp": dp, "pp": pp, "tp": tp}
    axes, product = " × ".join(sizes), math.prod(sizes.values())
    reasons: tuple[str, ...]
    if min(sizes.values()) < 1:
        *others, last = (f"{name} {size}" for name, size in sizes.items())
        raise ValueError(f"{', '.join(others)} and {last} have to be 1 or more{_possible(ranks, config, axes, pp)}")
    factors = " × ".join(map(str, sizes.values()))
    reasons = (f"{axes} is {factors} = {product}, but there are {ranks} ranks",) if product != ranks else ()
    if reasons := reasons + why_not(config, tp):
        raise ValueError(f"{'; '.join(reasons)}{_possible(ranks, config, axes, pp)}")


def _possible(ranks: int, config: TransformerConfig, axes: str, pp: int) -> str:
    """Return the sentence about the layouts with `pp` pipeline stages; '' if there are none."""
    if pp < 1 or ranks % pp:
        return ""
    found = [layout for layout in layouts(ranks // pp, config) if not layout.why_not]
    told = ", ".join(f"{at.dp} × {at.tp}" if pp == 1 else f"{at.dp} × {pp} × {at.tp}" for at in found)
    return f". Possible {axes} on {ranks} ranks: {told}"
