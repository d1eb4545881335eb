"""The same study on nodes that one Linux machine pretends to be, over a link as slow as you like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labs_helpers.data_parallel.study.measure import Options, Record, measure_all
from labs_helpers.launch.pretend_nodes import pretend_nodes


def measure_pretended(
    nodes: int, ranks_per_node: int, rate: str | None, kinds: Sequence[str], every: Sequence[Options], timeout: float
) -> list[Record]:
    """`measure_all` on ranks of `nodes` pretended nodes, whose link is measured first and named for what it does.

    Raises as `pretend_nodes` does, and RanksFailed or RanksTimeout (timeout: seconds) with the ranks' names.
    """
    with pretend_nodes(nodes, rate) as pretended:
        link = pretended.measure_rate()
        every = [replace(each, link=link.name, asked=rate) for each in every]
        found: list[Record] = pretended.run_torch(_on_ranks, ranks_per_node, kinds, every, timeout=timeout)[0]
    return found


def _on_ranks(kinds: Sequence[str], every: Sequence[Options]) -> list[Record]:
    import torch

    torch.set_num_threads(1)  # ranks are what shares the cores
    return measure_all(kinds, every)
