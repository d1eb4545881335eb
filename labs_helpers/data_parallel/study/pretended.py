"""Run the study on pretended nodes of one Linux machine, over a link of any rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labs_helpers.data_parallel.study.measure import Options, Record, measure_all
from labs_helpers.launch.pretend_nodes import pretend_nodes


def measure_pretended(
    nodes: int, ranks_per_node: int, rate: str | None, kinds: Sequence[str], every: Sequence[Options], timeout: float
) -> list[Record]:
    """Run `measure_all` on ranks of `nodes` pretended nodes, after measuring their link, which names the records.

    timeout: seconds. Raises the errors of `pretend_nodes`, and RanksFailed or RanksTimeout with the ranks' names.
    """
    with pretend_nodes(nodes, rate) as pretended:
        link = pretended.measure_rate()
        every = [replace(each, link=link.name, asked=rate) for each in every]
        found: list[Record] = pretended.run_torch(_on_ranks, ranks_per_node, kinds, every, timeout=timeout)[0]
    return found


def _on_ranks(kinds: Sequence[str], every: Sequence[Options]) -> list[Record]:
    import torch

    torch.set_num_threads(1)  # the ranks share the cores, so each uses one thread
    return measure_all(kinds, every)
