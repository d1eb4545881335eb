"""Race all-reduce on two simulated nodes of four ranks, over a slow link, a fast one, and in one node's shared memory.

    python -m labs_helpers.collectives.nodes_study          # as root; two minutes
    python -m labs_helpers.collectives.nodes_study --quick

Each link is measured before the race and named for the result. Its prediction has one α and β per kind of link: inside
a node those of all pairs at the same time; between nodes those of a cable, which all ranks of a node share.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from labs_helpers.collectives.cost_model import Costs, Terms
from labs_helpers.collectives.cost_model import terms as terms_of
from labs_helpers.collectives.race.records import NATIVE, costs_of, latest
from labs_helpers.launch import program
from labs_helpers.launch.pretend_nodes import can_pretend, pretend_nodes
from labs_helpers.measure.machine import cores_label
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study

STUDY = Study("collectives-nodes", "python -m labs_helpers.collectives.nodes_study", "4-core CPU")
load = STUDY.load
NODES, RANKS_PER_NODE = 2, 4
FLAT = ("ring", "recursive_doubling", "rabenseifner")
SIZES = tuple(2**i for i in (3, 6, 9, 12, 14, 16, 18, 20, 22, 24))  # 8 B to 16 MB
RATES = ("1gbit", None)
SHARED_MEMORY = "shared memory"


def terms(algorithm: str, ranks_per_node: int, nodes: int) -> tuple[Terms, Terms]:
    """Return an all-reduce's critical path inside the nodes and between them, for ranks ordered by node.

    Between nodes, 'sent' is what leaves one node by its cable, in one direction. ValueError for an algorithm without a
    model and, except for the ring, unless both counts are powers of two.
    """
    whole = terms_of("allreduce", algorithm, ranks_per_node * nodes, nodes)
    if nodes == 1:
        return whole, Terms(0)
    if algorithm == "ring":  # in each step one rank of a node sends to the next node, and the others wait for it
        return whole._replace(messages=0, sent=0), Terms(whole.messages, whole.sent)
    if ranks_per_node & (ranks_per_node - 1) or nodes & (nodes - 1):
        raise ValueError(f"{nodes} nodes of {ranks_per_node} ranks: both have to be powers of two for {algorithm}")
    steps, share = nodes.bit_length() - 1, 1 - 1 / nodes
    # What a rank sends to another node, and how many ranks of a node do so at the same time.
    between, at_once = {
        "recursive_doubling": (Terms(steps, steps), ranks_per_node),
        "rabenseifner": (Terms(2 * steps, 2 * share / ranks_per_node), ranks_per_node),
        "hierarchical": (Terms(2 * steps, 2 * share), 1),
    }.get(algorithm, (None, 0))
    if between is None:
        raise ValueError(f"there is no model of {algorithm} between nodes")
    inside = whole._replace(messages=whole.messages - between.messages, sent=whole.sent - between.sent)
    return inside, between._replace(sent=at_once * between.sent)


def predict(rows, link: str, algorithm: str, nbytes: float) -> float:
    """Return the predicted seconds of an all-reduce of n = nbytes over a link of the records (`link`), from its α
    and β."""
    rows = rows[rows["link"] == link]
    nodes, ranks_per_node = (int(rows[name].iloc[0]) for name in ("nodes", "ranks_per_node"))
    inside, between = terms(algorithm, ranks_per_node, nodes)
    seconds = costs_of(rows, nodes * ranks_per_node).seconds(inside, nbytes)
    return seconds + (costs_between(rows).seconds(between, nbytes) if nodes > 1 else 0)


def costs_between(rows) -> Costs:
    """Return α and β of the cable between nodes, from the records of one link."""
    (record,) = latest(rows, "link").tail(1).to_dict("records")
    return Costs(record["alpha_us"] / 1e6, record["beta_ns"] / 1e9)


def measure(rate: str | None, shared: bool = False, sizes: Iterable[int] = SIZES, timeout: float = 240) -> list[dict]:
    """Return records over the requested link; `shared`: of as many ranks on one node. Raises as `pretend_nodes`
    does."""
    from labs_helpers.collectives.study import race_on

    nodes = 1 if shared else NODES
    algorithms = {"allreduce": (*FLAT, "shared_memory" if shared else "hierarchical", NATIVE)}
    with pretend_nodes(nodes, rate) as pretended:
        link = None if shared else pretended.measure_rate()
        per_node = NODES * RANKS_PER_NODE // nodes
        library, records = pretended.run_on_ranks(race_on, per_node, algorithms, sizes, 0.06, True, timeout=timeout)[0]
    if link:
        records.append(link.record())
    name = link.name if link else SHARED_MEMORY
    same = {"study": STUDY.name, "link": name, "asked": rate, "nodes": nodes, "ranks_per_node": per_node}
    # The race keeps the middle of three rounds; only its ranks know MPI.
    return [same | record | {"setting": "default", "on": {"mpi": library}} for record in records]


def table(rows, link: str) -> str:
    """Return median times in µs over one link, by size and algorithm, each followed by its prediction."""
    race = latest(rows[rows["link"] == link], "race")
    shown = race.pivot_table(index="bytes", columns="algorithm", values="median_us")
    for name in shown.columns.drop(NATIVE):
        at = [1e6 * predict(rows, link, name, size) for size in shown.index]
        shown[name] = [f"{us:.4g} ({p:.4g})" for us, p in zip(shown[name], at, strict=True)]
    shown[NATIVE] = shown[NATIVE].map("{:.4g}".format)
    return f"{link}, {race['nodes'].iloc[0]} nodes: µs (predicted)\n{shown.to_string()}"


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="four sizes; kept only with --out or --record")
    given = parser.parse_args(arguments)
    if reason := can_pretend():
        parser.error(f"nodes cannot be pretended here: {reason}")
    os.environ["LABS_DEVICE"] = "cpu"  # no GPU takes part
    machine, sizes = cores_label(), SIZES[::3] if given.quick else SIZES
    records = []
    for rate, shared in (*((rate, False) for rate in RATES), (None, True)):
        records += measure(rate, shared, sizes)
        rows = frame(records)
        link = records[-1]["link"]
        here = rows[rows["link"] == link]
        between = "" if shared else f"; between nodes {costs_between(here)}"
        print(f"\n{table(rows, link)}\ninside a node {costs_of(here, NODES * RANKS_PER_NODE)}{between}", flush=True)
    if given.out or not given.quick:
        STUDY.keep(records, given.out, machine=machine)


if __name__ == "__main__":
    program.run(main)
