"""Predict the time of a training step by layout and placement, from lab 06's α and β for each kind of link.

    step = compute + Σ over the collectives of traffic.step_traffic

Compute is measured with groups that send nothing (`SilentCommunication`). A collective takes the predicted time of the
fastest of lab 06's flat algorithms; all-gather and reduce-scatter use the ring. Groups that communicate at the same
time share the cable between nodes; inside a node, α and β are measured while all ranks communicate. The model assumes
that ranks reach each collective at the same time, and that nothing overlaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from labs_helpers.collectives.cost_model import Costs, Terms, fit
from labs_helpers.collectives.cost_model import terms as terms_of
from labs_helpers.collectives.nodes_study import FLAT, costs_between
from labs_helpers.collectives.nodes_study import terms as allreduce_terms
from labs_helpers.collectives.race.records import costs_of
from labs_helpers.tensor_parallel.traffic import step_traffic
from labs_helpers.transformer import TransformerConfig

if TYPE_CHECKING:
    import pandas

MODEL = ("vocabulary", "layers", "width", "heads", "hidden")  # the fields of a TransformerConfig in records


class Predicted(NamedTuple):
    """The predicted milliseconds of a step, by part."""

    compute_ms: float
    tp_ms: float
    dp_ms: float

    @property
    def step_ms(self) -> float:
        return self.compute_ms + self.tp_ms + self.dp_ms


def group_terms(operation: str, algorithm: str, ranks: int, nodes: int) -> tuple[Terms, Terms]:
    """Return a collective's critical path inside the nodes and between them.

    The group's ranks are ordered by node, with the same number on each. 'sent' between nodes counts the bytes that
    leave one node. Raises ValueError if there is no model for these numbers.
    """
    if operation == "all_reduce":
        return allreduce_terms(algorithm, ranks // nodes, nodes)
    whole = terms_of({"all_gather": "allgather"}.get(operation, operation), algorithm, ranks)
    if nodes == 1:
        return whole, Terms(0)
    return whole._replace(messages=0, sent=0), Terms(whole.messages, whole.sent)


def collective_seconds(
    operation: str, nbytes: int, ranks: int, nodes: int, ranks_per_node: int, inside: Costs, cable: Costs | None
) -> float:
    """Return the seconds of a collective of `ranks` ranks on `nodes` nodes.

    The other ranks of these nodes make the same collective in their own groups at the same time. nbytes: of the whole
    tensor. cable: the costs between nodes, needed if nodes > 1.
    """
    sharing = ranks_per_node * nodes // ranks  # groups that send through the same cable
    times = []
    for algorithm in FLAT if operation == "all_reduce" else ("ring",):
        with suppress(ValueError):  # some algorithms have a model only for powers of two
            here, between = group_terms(operation, algorithm, ranks, nodes)
            seconds = inside.seconds(here, nbytes)
            if nodes > 1:
                assert cable is not None
                seconds += cable.seconds(between._replace(sent=sharing * between.sent), nbytes)
            times.append(seconds)
    return cast(float, np.minimum.reduce(times))  # an array if α or β is one


def communication_seconds(
    config: TransformerConfig,
    batch: int,
    length: int,
    groups: Mapping[str, tuple[int, int]],
    ranks_per_node: int,
    inside: Costs,
    cable: Costs | None,
    **how: Any,
) -> dict[str, float]:
    """Return the seconds that a step spends in the collectives of each group.

    batch: sequences on all ranks together. groups: "tp" and "dp" → (ranks, nodes that they occupy). how: scheme and
    sequence_parallel of `step_traffic`.
    """
    (tp, _), (dp, _) = groups["tp"], groups["dp"]
    seconds = dict.fromkeys(groups, 0.0)
    for sent in step_traffic(config, batch // dp, length, tp, dp, **how):
        ranks, nodes = groups[sent.group]
        seconds[sent.group] += sent.calls * collective_seconds(
            sent.operation, sent.payload, ranks, nodes, ranks_per_node, inside, cable
        )
    return seconds


def predict(rows: pandas.DataFrame, step: Mapping[str, Any]) -> Predicted:
    """Predict a step's times from α and β of the same link.

    rows: the records of study.load; step: one of them, of the kind 'step'. Raises ValueError without records of the
    link.
    """
    seconds = communication_seconds(
        config_of(step),
        int(step["batch"]),
        int(step["length"]),
        {name: (int(step[name]), int(step[f"{name}_nodes"])) for name in ("tp", "dp")},
        int(step["ranks_per_node"]),
        *costs(rows, step["link"]),
        scheme=step["scheme"],
        sequence_parallel=bool(step["sequence_parallel"]),
    )
    return Predicted(float(step["alone_ms"]), 1e3 * seconds["tp"], 1e3 * seconds["dp"])


def costs(rows: pandas.DataFrame, link: str) -> tuple[Costs, Costs | None]:
    """Return α and β inside a node, while all ranks communicate, and between nodes; None if the link joins no nodes.

    Raises ValueError without records of the link.
    """
    rows = rows[rows["link"] == link]
    if rows.empty:
        raise ValueError(f"no records over {link}")
    nodes, ranks_per_node = (int(rows[name].iloc[0]) for name in ("nodes", "ranks_per_node"))
    return costs_of(rows, nodes * ranks_per_node), costs_between(rows) if nodes > 1 else None


def config_of(step: Mapping[str, Any]) -> TransformerConfig:
    """Return the TransformerConfig of a record."""
    return TransformerConfig(
        int(step["vocabulary"]), int(step["layers"]), int(step["width"]), int(step["heads"]), int(step["hidden"])
    )


def predict_gpus(rows: pandas.DataFrame, step: Mapping[str, Any]) -> Predicted:
    """Predict a step's times on the GPUs of one machine.

    Compute alone is measured; each collective takes α + nβ, fitted to the all-reduces measured in the same group. rows:
    the records of gpu_race.py; step: one of them, of the kind 'gpu_step', without sequence parallelism. Raises
    ValueError if the compute or the all-reduces were not measured.
    """
    dp, tp = int(step["dp"]), int(step["tp"])
    same = rows[(rows["kind"] == "gpu_step") & rows["step_ms"].notna()]
    for name in ("dp", "tp", "attention", "compiled", "world_size"):
        same = same[same[name] == step[name]]
    alone = same[same["library"] == ("compute alone" if tp > 1 else "ours")]
    for name in ("average", "sequence_parallel", "whole"):
        alone = alone[~alone[name].astype(bool)] if name in alone else alone
    if alone.empty:
        raise ValueError(f"no record of the compute alone of {dp} × {tp}, {step['attention']}")
    itemsize = {"bfloat16": 2, "float32": 4}[step["dtype"]]
    sent = step_traffic(config_of(step), int(step["batch"]) // dp, int(step["length"]), tp, dp, itemsize)
    ms = dict.fromkeys(("tp", "dp"), 0.0)
    for row in sent:
        if row.group == "dp" and not step["average"]:
            continue
        ranks = {"tp": tp, "dp": dp}[row.group]
        calls = rows[(rows["kind"] == "all_reduce") & (rows["ranks"] == ranks) & (rows["group"] == row.group)]
        alpha, beta = fit(calls["bytes"], calls["call_ms"])
        ms[row.group] += row.calls * (alpha + row.payload * beta)
    return Predicted(float(alone["step_ms"].iloc[-1]), ms["tp"], ms["dp"])
