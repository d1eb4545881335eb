"""Choose the algorithm for `algorithm="auto"`, from measurements (auto.json) or from a rule if there are none.

auto.json is a list of records, one per range of sizes:

    {"function": "allreduce", "ranks": 8, "nodes": 1, "up_to_bytes": 4096, "algorithm": "shared_memory"}

up_to_bytes: of the send buffer (of the buffer for a broadcast), null for no limit. Of the records in the order of
up_to_bytes, the first that is large enough counts. For numbers of ranks or nodes that were not measured, the nearest
ones count.
"""

import functools
import json
from collections.abc import Container
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("auto.json")
SHORT_BYTES = 8192  # below it latency matters more than bytes, so the fewest messages win


def choose(function: str, ranks: int, nbytes: int, nodes: int | None = 1, known: Container[str] | None = None) -> str:
    """Return the algorithm for `nbytes` on `ranks` ranks of `nodes` nodes.

    nodes: None for ranks that do not share MPI memory (practice ranks). known: the names to choose from.
    """
    measured = _rows(function, ranks, nodes) if nodes is not None else ()
    for limit, algorithm in measured:
        if nbytes <= limit and (known is None or algorithm in known):
            return algorithm
    return next(name for name in _rule(function, nbytes, nodes) if known is None or name in known)


def load(table: Path) -> list[dict[str, Any]]:
    """Return the records of a table. ValueError names the file and what a record lacks."""
    records = json.loads(table.read_text()) if table.exists() else []
    for record in records:
        missing = {"function", "ranks", "nodes", "up_to_bytes", "algorithm"} - set(record)
        if missing:
            raise ValueError(f"{table}: {record} lacks {', '.join(sorted(missing))}")
    return records


@functools.lru_cache(maxsize=256)
def _rows(function: str, ranks: int, nodes: int) -> tuple[tuple[float, str], ...]:
    records = [record for record in _table() if record["function"] == function]
    records = [record for record in records if (record["nodes"] > 1) == (nodes > 1)]
    if not records:
        return ()
    near = min({record["ranks"] for record in records}, key=lambda measured: (abs(measured - ranks), measured))
    rows = [(record["up_to_bytes"], record["algorithm"]) for record in records if record["ranks"] == near]
    return tuple(sorted((float("inf") if limit is None else limit, name) for limit, name in rows))


@functools.cache
def _table() -> list[dict[str, Any]]:
    return load(TABLE)


def _rule(function: str, nbytes: int, nodes: int | None) -> list[str]:
    """Return names in the order of preference; the last ones work for every layout."""
    within = ["shared_memory"] if nodes == 1 else ["hierarchical"] if nodes else []
    short = nbytes <= SHORT_BYTES
    return {
        "allreduce": within + (["recursive_doubling", "rabenseifner"] if short else ["rabenseifner"]),
        "reduce_scatter": ["recursive_halving", "ring"] if nbytes <= 64 * SHORT_BYTES else ["ring"],
        "allgather": ["ring"],
        "broadcast": ["binomial"],
        "alltoall": (within if nodes == 1 else []) + ["pairwise"],
    }[function]
