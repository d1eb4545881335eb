"""Time a training step in every dp × tp layout of eight ranks, on two simulated nodes and on one node.

    python -m labs_helpers.tensor_parallel.study             # as root; three minutes
    python -m labs_helpers.tensor_parallel.study --quick

The two nodes of four ranks are joined first by a slow link and then by the fastest one possible; each link is named
after its measured rate. The one node communicates through shared memory. Tensor-parallel groups are placed inside the
nodes or across them, according to the ranks' host names. Each layout is timed with many tokens per step and with few.
The bytes that a step sends and a rank holds do not depend on the link, so they are counted once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from labs_helpers.launch import program
from labs_helpers.launch.flavour import BACKGROUND_SUMS
from labs_helpers.launch.pretend_nodes import can_pretend, pretend_nodes
from labs_helpers.measure.machine import cores_label
from labs_helpers.measure.records import frame
from labs_helpers.tensor_parallel.layout_race import Record, count, race
from labs_helpers.tensor_parallel.predict import MODEL, predict
from labs_helpers.tensor_parallel.records import STUDY, variant_of
from labs_helpers.tensor_parallel.variants import Task, Variant
from labs_helpers.transformer import TransformerConfig

if TYPE_CHECKING:
    import pandas

load = STUDY.load
NODES, RANKS_PER_NODE = 2, 4
RATES = ("1gbit", None)
SHARED_MEMORY = "shared memory"
CONFIG = TransformerConfig(256, layers=4, width=256, heads=8, hidden=768)  # 3.5 million parameters, over bytes
BATCH, LENGTH, SHORT = 8, 256, 32  # sequences on all ranks together, and tokens per sequence
LAYOUTS = (
    Variant(8, 1),
    Variant(4, 2),
    Variant(4, 2, "across"),
    Variant(2, 4),
    Variant(2, 4, "across"),
    Variant(1, 8),
)
OTHERS = (
    Variant(2, 4, scheme="naive"),
    Variant(1, 8, scheme="naive"),
    Variant(2, 4, sequence_parallel=True),
    Variant(1, 8, sequence_parallel=True),
    Variant(8, 1, overlap=True),
)


def measure(
    rate: str | None,
    shared: bool = False,
    rounds: int = 5,
    variants: Mapping[int, Sequence[Variant]] = MappingProxyType({LENGTH: LAYOUTS + OTHERS, SHORT: LAYOUTS}),
    config: TransformerConfig = CONFIG,
    timeout: float = 600,
) -> list[Record]:
    """Measure all variants over one link, and return the records.

    rate: of the link between two nodes; None for the fastest possible. shared: put all ranks on one node instead, and
    also count bytes for the variants of the first length. variants: by length in tokens. Raises the errors of
    `pretend_nodes`, and RanksFailed with the message of `race`.
    """
    nodes = 1 if shared else NODES
    per_node = NODES * RANKS_PER_NODE // nodes
    here = {
        length: [variant for variant in of_length if not (shared and variant.placement == "across")]
        for length, of_length in variants.items()
    }
    with pretend_nodes(nodes, rate) as pretended:
        link = None if shared else pretended.measure_rate()
        library, costs, steps = pretended.run_on_ranks(
            _on_ranks, per_node, here, per_node, rounds, config, shared, timeout=timeout, env=BACKGROUND_SUMS
        )[0]
    name = link.name if link else SHARED_MEMORY
    same = {"study": STUDY.name, "link": name, "asked": rate, "nodes": nodes, "ranks_per_node": per_node}
    records = [same | record for record in costs + steps] + [same | link.record() for link in (link,) if link]
    return [record | {"on": {"mpi": library, "mpi_settings": BACKGROUND_SUMS}} for record in records]


def _on_ranks(
    comm: Any,
    variants: Mapping[int, Sequence[Variant]],
    ranks_per_node: int,
    rounds: int,
    config: TransformerConfig,
    counts: bool,
) -> tuple[str, list[Record], list[Record]]:
    """Return (MPI's version, records of link costs, records of steps); the lists are empty except on rank 0."""
    import torch

    from labs_helpers.collectives.study import race_on

    torch.set_num_threads(1)  # the ranks themselves share the cores
    library, costs = race_on(comm, {}, (), 0.06, True)
    steps: list[Record] = []
    for length, of_length in variants.items():
        task = Task(comm, config, BATCH, length)
        measured = race(task, of_length, ranks_per_node, rounds)
        if counts and length == next(iter(variants)):
            measured += count(task, of_length, ranks_per_node)
        about = {name: getattr(config, name) for name in MODEL} | {"batch": BATCH, "length": length}
        steps += [about | record for record in measured]
    return library, costs, steps


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per step: median and spread in ms, its parts, the prediction and its error.

    Overlapped steps have no prediction.
    """
    import pandas

    lines = []
    for _, row in rows[rows["kind"] == "step"].iterrows():
        line = {"link": row["link"], "tokens": row["batch"] * row["length"], "layout": str(variant_of(row))}
        line |= {"step ms": row["step_ms"]}
        line["spread"] = (row["step_p80_ms"] - row["step_p20_ms"]) / row["step_ms"]
        line |= {"compute": row["alone_ms"], "in tp": row["tp_ms"], "in dp": row["dp_ms"]}
        if not row["overlap"]:
            told = predict(rows, row)
            line |= {"predicted": told.step_ms, "tp (p)": told.tp_ms, "dp (p)": told.dp_ms}
            line["off"] = told.step_ms / row["step_ms"] - 1
        lines.append(line)
    return pandas.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--rounds", type=int, help="timed steps per layout; default: 5, with --quick 2")
    parser.add_argument(
        "--quick", action="store_true", help="time two rounds; keep the records only with --out or --record"
    )
    given = parser.parse_args(arguments)
    rounds = (2 if given.quick else 5) if given.rounds is None else given.rounds
    if rounds < 1:
        parser.error(f"--rounds is {rounds}, but has to be 1 or more")
    if reason := can_pretend():
        parser.error(f"this machine cannot simulate nodes: {reason}")
    os.environ["LABS_DEVICE"] = "cpu"  # this study uses no GPU
    machine = cores_label()
    links = [(rate, False) for rate in RATES] + [(None, True)]
    for number, (rate, shared) in enumerate(links, start=1):
        wanted = SHARED_MEMORY if shared else rate or "fastest link"
        print(f"[{number}/{len(links)}] {wanted}, {rounds} rounds", flush=True)
        records = measure(rate, shared, rounds)
        print(f"\n{_shown(frame(records))}\n", flush=True)
        if given.out or not given.quick:
            STUDY.keep(records, given.out, machine=machine)


def _shown(rows: pandas.DataFrame) -> str:
    percent = "{:+.0%}".format
    shares = {"spread": "{:.0%}".format, "off": percent}
    return table(rows).to_string(index=False, float_format="{:.0f}".format, formatters=shares, na_rep="–")


if __name__ == "__main__":
    program.run(main)
