"""Find the dp × tp layouts that a number of ranks and a transformer allow, and explain why others are impossible."""

from __future__ import annotations

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


def check_layout(ranks: int, dp: int, tp: int, config: TransformerConfig) -> None:
    """Raise ValueError, with the possible layouts, if dp × tp ranks cannot train this transformer."""
    reasons: tuple[str, ...]
    if min(dp, tp) < 1:
        reasons = (f"dp {dp} and tp {tp} have to be 1 or more",)
    else:
        product = (f"dp × tp is {dp} × {tp} = {dp * tp}, but there are {ranks} ranks",) if dp * tp != ranks else ()
        reasons = product + why_not(config, tp)
    if reasons:
        possible = ", ".join(f"{layout.dp} × {layout.tp}" for layout in layouts(ranks, config) if not layout.why_not)
        raise ValueError(f"{'; '.join(reasons)}. Possible dp × tp on {ranks} ranks: {possible}")
