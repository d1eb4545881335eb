"""What the study at random shapes found: a number a shape, the worst of them, and a scatter plot."""

from __future__ import annotations

from typing import Any

import torch

from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.ratios import draw_ratios
from labs_helpers.gemm.random_shapes import KINDS
from labs_helpers.gemm.random_study import STUDY, run
from labs_helpers.gemm.study import EAGER, OURS
from labs_helpers.measure.records import of_machine
from labs_helpers.measure.study import destination, kept


def load(machine: str = "nvidia-h200"):
    """The recorded measurements of one machine, as a DataFrame."""
    return of_machine(STUDY, machine, "python -m labs_helpers.gemm.study --random 200 --seed 7")


def ratios(frame, dtype: str | None = None):
    """A row for each shape and way of timing: `best` baseline, `ratio` = its time over ours, `eager` = eager's over
    ours, above 1 where ours is faster. Of a shape with a second pass that one counts, since it has more baselines.

    frame: of one machine. dtype: by default the frame's first. ValueError where nothing is of ours.
    """
    import pandas

    if "median_ms" not in frame or not (frame["name"] == OURS).any():
        raise ValueError(f"no record here has a time of {OURS}: the study times it on a GPU")
    rows = frame[(frame["dtype"] == (dtype or frame["dtype"].iloc[0])) & frame["median_ms"].notna()]
    rows = rows.sort_values("autotuned", kind="stable")
    rows = rows.drop_duplicates(["M", "N", "K", "graph", "autotuned", "name"], keep="last")
    found = []
    for (M, N, K, graph), shape in rows.groupby(["M", "N", "K", "graph"], sort=False):
        times = shape[shape["autotuned"] == shape["autotuned"].max()].set_index("name")
        baselines = times["median_ms"].drop(OURS, errors="ignore")
        if OURS not in times.index or baselines.empty:
            continue
        ours = times["median_ms"][OURS]
        known = {"shape": times["shape"].iloc[0], "M": M, "N": N, "K": K, "graph": bool(graph), "flops": 2 * M * N * K}
        told: dict[str, Any] = {"ms": ours, "best": baselines.idxmin(), "ratio": baselines.min() / ours}
        told["eager"] = baselines.get(EAGER, float("nan")) / ours
        told["plan"] = times["plan"].iloc[0] if "plan" in times else ""
        found.append(known | told)
    return pandas.DataFrame(found)


def summary(table) -> str:
    """A line for each kind of shape and way of timing: how many, the geometric mean, the least, how many below."""
    import numpy
    import pandas

    lines = []
    for (graph, kind), rows in table.groupby(["graph", "shape"]):
        lines.append(
            {"timed": "graph" if graph else "call", "shapes": kind, "n": len(rows)}
            | {"geometric mean": f"{numpy.exp(numpy.log(rows['ratio']).mean()):.3f}"}
            | {"least": f"{rows['ratio'].min():.2f}", "below 1": int((rows["ratio"] < 1).sum())}
            | {"below 0.98 × eager": int((rows["eager"] < 0.98).sum())}
        )
    return pandas.DataFrame(lines).to_string(index=False)


def worst(table, n: int = 10) -> str:
    """The `n` rows with the least ratio, worst first, with the plan that was taken."""
    shown = table.sort_values("ratio").head(n).copy()
    shown["timed"] = shown["graph"].map({True: "graph", False: "call"})
    columns = ["timed", "shape", "M", "N", "K", "ms", "best", "ratio", "eager", "plan"]
    formats = {"ms": "{:.4f}".format, "ratio": "{:.2f}".format, "eager": "{:.2f}".format}
    return shown[columns].to_string(index=False, formatters=formats, max_colwidth=90)


@beside_yours("gemm-random")
def draw_random(frame, dtype: str | None = None):
    """The best baseline's time over ours against the product's FLOPs, a point a shape, a panel a way of timing."""
    import numpy

    table = ratios(frame, dtype)
    last = table[table["graph"] == table["graph"].max()]["ratio"]
    mean, slower = float(numpy.exp(numpy.log(last).mean())), int((last < 1).sum())
    title = f"{len(last)} random shapes: {mean:.2f} × the best baseline's speed, slower at {slower}"
    return draw_ratios(table, KINDS, title + recorded_on(frame), "2·M·N·K", "the best baseline's time over ours")


def main(given, dtype: torch.dtype) -> None:
    """`gemm.study --random`: measure what is missing, and print what the new records say."""
    import pandas

    new = run(given.random, given.seed, dtype, given.out, autotuned=given.autotuned, seconds=given.seconds)
    failed = [record for record in new if "error" in record]
    for record in failed:
        print(f"{record['name']} at {record['M']}×{record['N']}×{record['K']}: {record['error'][:150]}")
    frame = pandas.DataFrame(new)
    if len(frame) and (frame["name"] == OURS).any() and "median_ms" in frame:
        table = ratios(frame)
        print(f"\n{summary(table)}\n\nThe worst:\n{worst(table)}\n")
    print(kept(len(new), destination(STUDY, given.out)), flush=True)
