"""What the study at random shapes found: a number a shape, the worst of them, and a scatter plot."""

from __future__ import annotations

from typing import Any

import torch

from labs_helpers.attention.baselines import OURS
from labs_helpers.attention.random_shapes import KINDS
from labs_helpers.attention.random_study import STUDY, run
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.ratios import draw_ratios
from labs_helpers.measure.records import of_machine
from labs_helpers.measure.study import destination, kept

SHAPE = ["B", "H", "Hkv", "Lq", "Lk", "D", "causal"]


def load(machine: str = "nvidia-h200"):
    """The recorded measurements of one machine, as a DataFrame."""
    return of_machine(STUDY, machine, "python -m labs_helpers.attention.study --random 100 --seed 7")


def ratios(frame, dtype: str | None = None):
    """A row for each shape, direction and way of timing: `best` baseline, `ratio` = its time over ours, above 1 where
    ours is faster, `TB/s` = the least bytes of a forward over our time.

    frame: of one machine. dtype: by default the frame's first. ValueError where nothing is of ours.
    """
    import pandas

    if "median_ms" not in frame or not frame["median_ms"][frame["name"] == OURS].notna().any():
        raise ValueError(f"no record here has a time of {OURS}: the study times it on a GPU")
    rows = frame[(frame["dtype"] == (dtype or frame["dtype"].iloc[0])) & frame["median_ms"].notna()]
    keys = ["direction", "graph", *SHAPE]
    rows = rows.drop_duplicates([*keys, "name"], keep="last")
    found = []
    for place, shape in rows.groupby(keys, sort=False):
        times = shape.set_index("name")
        baselines = times["median_ms"].drop(OURS, errors="ignore")
        if OURS not in times.index or baselines.empty:
            continue
        first, ours = times.iloc[0], times["median_ms"][OURS]
        told: dict[str, Any] = dict(zip(keys, place, strict=True)) | {"shape": first["shape"], "flops": first["flops"]}
        told |= {"ms": ours, "best": baselines.idxmin(), "ratio": baselines.min() / ours, "plan": first["plan"]}
        told["TB/s"] = first["bytes"] / ours / 1e9 if told["direction"] == "forward" else float("nan")
        found.append(told)
    return pandas.DataFrame(found)


def summary(table) -> str:
    """A line for each kind of shape, direction and way of timing: how many, geometric mean, least, how many below."""
    import numpy
    import pandas

    lines = [
        {"timed": "graph" if graph else "call", "direction": direction, "shapes": kind, "n": len(rows)}
        | {"geometric mean": f"{numpy.exp(numpy.log(rows['ratio']).mean()):.3f}"}
        | {"least": f"{rows['ratio'].min():.2f}", "below 1": int((rows["ratio"] < 1).sum())}
        for (graph, direction, kind), rows in table.groupby(["graph", "direction", "shape"])
    ]
    return pandas.DataFrame(lines).to_string(index=False)


def worst(table, n: int = 10) -> str:
    """The `n` rows with the least ratio, worst first, with the plan that was taken."""
    shown = table.sort_values("ratio").head(n).copy()
    shown["timed"] = shown["graph"].map({True: "graph", False: "call"})
    shown["mask"] = shown["causal"].map({True: "causal", False: "full"})
    columns = ["timed", "direction", "shape", *SHAPE[:-1], "mask", "ms", "best", "ratio", "TB/s", "plan"]
    formats = {"ms": "{:.4f}".format, "ratio": "{:.2f}".format, "TB/s": "{:.2f}".format}
    return shown[columns].to_string(index=False, formatters=formats, max_colwidth=60)


@beside_yours("attention-random")
def draw_random(frame, dtype: str | None = None):
    """The best baseline's time over ours against the operations, a point a shape and direction, a panel a way of
    timing."""
    import numpy

    table = ratios(frame, dtype)
    last = table[table["graph"] == table["graph"].max()]["ratio"]
    mean, slower = numpy.exp(numpy.log(last).mean()), int((last < 1).sum())
    title = f"{len(last)} random passes: {mean:.2f} × the best baseline's speed, slower at {slower}"
    return draw_ratios(table, KINDS, title + recorded_on(frame), "operations", "the best baseline's time over ours")


def main(given, dtype: torch.dtype) -> None:
    """`attention.study --random`: measure what is missing, and print what the new records say."""
    import pandas

    new = run(given.random, given.seed, dtype, given.out, rounds=given.rounds or 3, seconds=given.seconds)
    for record in new:
        if "error" in record and (record["name"] == OURS or record["error"].startswith("ValueError: wrong")):
            print(f"{record['name']} at {[record[name] for name in SHAPE]}: {record['error'][:150]}")
    frame = pandas.DataFrame(new)
    if len(frame) and "median_ms" in frame and frame["median_ms"][frame["name"] == OURS].notna().any():
        table = ratios(frame)
        print(f"\n{summary(table)}\n\nThe worst:\n{worst(table)}\n")
    print(kept(len(new), destination(STUDY, given.out)), flush=True)
