"""Time a training step in every dp × tp layout of eight ranks, on two pretended nodes and in one node's shared memory.

    python -m labs_helpers.tensor_parallel.study             # as root; three minutes
    python -m labs_helpers.tensor_parallel.study --quick

Two nodes of four ranks are joined by a slow link and by one as fast as it goes, each measured and named for what was
measured. Layouts have their tensor-parallel groups inside the nodes or across them, by the ranks' host names, and are
timed with many tokens per step and with few. What a step sends and a rank holds is the same over each link, and counted
once.
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
CONFIG = TransformerConfig(256, layers=4, width=256, heads=8, hidden=768)  # 3.5 million parameters, of bytes
BATCH, LENGTH, SHORT = 8, 256, 32  # sequences of all ranks together, and their tokens
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
    """Records over the link asked for; `shared`: of as many ranks in one node, with the counts of the first variants.

    variants: of each length in tokens. Raises as `pretend_nodes` does, and RanksFailed with what `race` says.
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
    """(MPI's version, records of the links' costs, records of the steps); the lists are empty but on rank 0."""
    import torch

    from labs_helpers.collectives.study import race_on

    torch.set_num_threads(1)  # ranks are what shares the cores
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
    """A row per step: its median and spread in ms, its parts, the prediction (not of what overlaps), and how far that
    is from the median."""
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
    parser.add_argument("--rounds", type=int, help="timed steps of each layout; default: 5, with --quick 2")
    parser.add_argument("--quick", action="store_true", help="two rounds; kept only with --out or --record")
    given = parser.parse_args(arguments)
    rounds = (2 if given.quick else 5) if given.rounds is None else given.rounds
    if rounds < 1:
        parser.error(f"--rounds is {rounds}; at least 1 is needed")
    if reason := can_pretend():
        parser.error(f"nodes cannot be pretended here: {reason}")
    os.environ["LABS_DEVICE"] = "cpu"  # a GPU has no part in this
    machine = cores_label()
    links = [(rate, False) for rate in RATES] + [(None, True)]
    for number, (rate, shared) in enumerate(links, start=1):
        wanted = SHARED_MEMORY if shared else rate or "as fast as it goes"
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
