"""Evaluate the study's records: which algorithm is fastest, by how much, and the machine's α, β and γ.

All functions but `middle` take the DataFrame that `study.load` returns; of two records of the same thing the later one
counts.
"""

from __future__ import annotations

import math

from labs_helpers.collectives.cost_model import Costs, fit
from labs_helpers.collectives.race.native_settings import DEFAULT
from labs_helpers.measure.records import select

NATIVE = "native"
KEEP = 0.05  # how much slower than the fastest an algorithm may be for `auto` to keep it
_WHAT = ("function", "algorithm", "setting", "ranks", "together", "operation", "bytes")  # these identify what is timed


def middle(records: list[dict]) -> list[dict]:
    """Return, of all records that measured the same thing in different turns, the one with the middle time; of two,
    the slower."""
    same = {}
    for record in records:
        same.setdefault((record["kind"], *(record.get(name) for name in _WHAT)), []).append(record)
    chosen = [sorted(turns, key=lambda record: record["median_us"])[len(turns) // 2] for turns in same.values()]
    return [record | {"turns": len(turns)} for record, turns in zip(chosen, same.values(), strict=True)]


def costs_of(rows, ranks: int, together: bool = True) -> Costs:
    """Fit the cost model of one machine to its records, a DataFrame: α and β of the ping-pong with `ranks` ranks, γ
    and copy of local work there. together: all pairs at the same time, as a collective sends. ValueError without
    such records."""

    def fitted(kind, **wanted):
        chosen = latest(rows, kind, ranks=ranks, **wanted)
        return fit(chosen["bytes"], chosen["median_us"] / 1e6)

    alpha, beta = fitted("ping_pong", together=together)
    return Costs(alpha, beta, *(fitted("local", operation=operation)[1] for operation in ("reduce", "copy")))


def latest(rows, kind: str, **wanted):
    """Return the newest record of each size, candidate and setting of a kind with the column values `wanted`, by size.

    ValueError if there is none.
    """
    return select(rows, kind, _WHAT, **wanted).sort_values("bytes", kind="stable")


def compare(rows, function: str, ranks: int):
    """Return one row per size from a DataFrame of records: 'bytes'; 'ours' and 'algorithm'; 'native', by default;
    'best_native' and 'setting'; 'ratio', ours over best_native. Times in µs. ValueError without records of the race."""
    import pandas

    race = latest(rows, "race", function=function, ranks=ranks)
    native = race[race["algorithm"] == NATIVE]
    ours = race[~race["algorithm"].isin([NATIVE, "auto"])]
    table = []
    for size in sorted(set(ours["bytes"]) & set(native["bytes"])):
        mine, theirs = (group[group["bytes"] == size] for group in (ours, native))
        best, rival = (group.loc[group["median_us"].idxmin()] for group in (mine, theirs))
        default = theirs[theirs["setting"] == DEFAULT]["median_us"]
        table.append(
            {
                "bytes": int(size),
                "ours": best["median_us"],
                "algorithm": best["algorithm"],
                "native": default.iloc[0] if len(default) else float("nan"),
                "best_native": rival["median_us"],
                "setting": rival["setting"],
                "ratio": best["median_us"] / rival["median_us"],
            }
        )
    return pandas.DataFrame(table)


def table(rows, function: str, ranks: int):
    """Return `compare` as a command prints it, in µs, one row per size."""
    compared = compare(rows, function, ranks).rename(
        columns={"ours": "ours µs", "native": "native µs", "best_native": "best µs", "setting": "its setting"}
    )
    return compared.assign(ratio=compared["ratio"].map("{:.2f}".format))


def fastest(rows) -> list[dict]:
    """Return the table for `algorithm="auto"` (see choose.py) from a DataFrame of records: the fastest of ours in each
    range.

    An algorithm stays from one size to the next while it is within `KEEP` of the fastest there, so that noise does not
    make a patchwork. A range ends halfway (in the logarithm) to the size that the next algorithm takes over.
    """
    race = latest(rows, "race")
    race = race[~race["algorithm"].isin([NATIVE, "auto"])]
    records = []
    for (function, ranks, nodes), part in race.groupby(["function", "ranks", "nodes"]):
        times = part.pivot_table(index="bytes", columns="algorithm", values="median_us")
        where = {"function": function, "ranks": int(ranks), "nodes": int(nodes)}
        algorithm, before = None, 0
        for size, of in times.iterrows():
            if algorithm is not None and not of[algorithm] <= (1 + KEEP) * of.min():
                records.append(where | {"up_to_bytes": round(math.sqrt(before * size)), "algorithm": algorithm})
                algorithm = None
            algorithm, before = algorithm or of.idxmin(), size
        records.append(where | {"up_to_bytes": None, "algorithm": algorithm})
    return records
