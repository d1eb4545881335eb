"""How long a training step should take, by layout and placement: lab 06's α–β, a pair for each kind of link.

    step = compute + Σ over the collectives of traffic.step_traffic

Compute is measured, with groups in which nobody speaks (`SilentCommunication`). A collective takes as long as the
fastest of lab 06's flat algorithms should; all-gather and reduce-scatter go round the ring. Groups that talk at the
same time share the cable between nodes; inside a node α and β are measured with all ranks at work. Ranks come to each
collective at the same moment, and nothing is overlapped.
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

MODEL = ("vocabulary", "layers", "width", "heads", "hidden")  # what records have of a TransformerConfig


class Predicted(NamedTuple):
    """Milliseconds of a step."""

    compute_ms: float
    tp_ms: float
    dp_ms: float

    @property
    def step_ms(self) -> float:
        return self.compute_ms + self.tp_ms + self.dp_ms


def group_terms(operation: str, algorithm: str, ranks: int, nodes: int) -> tuple[Terms, Terms]:
    """A collective's critical path inside the nodes and between them, in a group whose ranks are in order of the nodes
    and equally many on each; 'sent' between nodes is what leaves one node. ValueError: there is no such model."""
    if operation == "all_reduce":
        return allreduce_terms(algorithm, ranks // nodes, nodes)
    whole = terms_of({"all_gather": "allgather"}.get(operation, operation), algorithm, ranks)
    if nodes == 1:
        return whole, Terms(0)
    return whole._replace(messages=0, sent=0), Terms(whole.messages, whole.sent)


def collective_seconds(
    operation: str, nbytes: int, ranks: int, nodes: int, ranks_per_node: int, inside: Costs, cable: Costs | None
) -> float:
    """Seconds of a collective of `ranks` ranks on `nodes` nodes while the other ranks of those nodes do the same in
    groups of their own. nbytes: of the whole tensor. cable: between nodes; needed where nodes > 1."""
    at_once = ranks_per_node * nodes // ranks  # groups that send through the same cable
    times = []
    for algorithm in FLAT if operation == "all_reduce" else ("ring",):
        with suppress(ValueError):  # no model for numbers that are not powers of two
            here, between = group_terms(operation, algorithm, ranks, nodes)
            seconds = inside.seconds(here, nbytes)
            if nodes > 1:
                assert cable is not None
                seconds += cable.seconds(between._replace(sent=at_once * between.sent), nbytes)
            times.append(seconds)
    return cast(float, np.minimum.reduce(times))  # an array where α or β is one


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
    """Seconds that a step is in the collectives of each group. batch: sequences of all ranks together; groups: "tp" and
    "dp" → (ranks, nodes that they are on); how: scheme and sequence_parallel of `step_traffic`."""
    (tp, _), (dp, _) = groups["tp"], groups["dp"]
    seconds = dict.fromkeys(groups, 0.0)
    for sent in step_traffic(config, batch // dp, length, tp, dp, **how):
        ranks, nodes = groups[sent.group]
        seconds[sent.group] += sent.calls * collective_seconds(
            sent.operation, sent.payload, ranks, nodes, ranks_per_node, inside, cable
        )
    return seconds


def predict(rows: pandas.DataFrame, step: Mapping[str, Any]) -> Predicted:
    """A step's times, from α and β over the same link. rows: as study.load gives them; step: one of them, of the kind
    'step'. ValueError where the records have none of that link."""
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
    """α and β inside a node, with all ranks at once, and between nodes; None where the link joins none. ValueError
    without records of the link."""
    rows = rows[rows["link"] == link]
    if rows.empty:
        raise ValueError(f"no records over {link}")
    nodes, ranks_per_node = (int(rows[name].iloc[0]) for name in ("nodes", "ranks_per_node"))
    return costs_of(rows, nodes * ranks_per_node), costs_between(rows) if nodes > 1 else None


def config_of(step: Mapping[str, Any]) -> TransformerConfig:
    """The model of a record."""
    return TransformerConfig(
        int(step["vocabulary"]), int(step["layers"]), int(step["width"]), int(step["heads"]), int(step["hidden"])
    )


def predict_gpus(rows: pandas.DataFrame, step: Mapping[str, Any]) -> Predicted:
    """The same on GPUs of one machine: compute alone, measured, and each collective as α + nβ of the all-reduces that
    were measured in such a group. rows: of gpu_race.py; step: one of them, of the kind 'gpu_step', without sequence
    parallelism. ValueError where the compute or the all-reduces were not measured."""
    dp, tp = int(step["dp"]), int(step["tp"])
    alike = rows[(rows["kind"] == "gpu_step") & rows["step_ms"].notna()]
    for name in ("dp", "tp", "attention", "compiled", "world_size"):
        alike = alike[alike[name] == step[name]]
    alone = alike[alike["library"] == ("compute alone" if tp > 1 else "ours")]
    for name in ("average", "sequence_parallel", "whole"):
        alone = alone[~alone[name].astype(bool)] if name in alone else alone
    if alone.empty:
        raise ValueError(f"no record of {dp} × {tp}'s compute alone, {step['attention']}")
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
