"""A study at random shapes that nobody tuned for: compare our code with its baselines, and find where it loses."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.options import count
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Record, Study

if TYPE_CHECKING:
    import pandas
    import torch

PLACE = ("machine", "commit", "torch", "triton")  # records that differ in one of these do not count as measured


@dataclass(frozen=True)
class RandomStudy:
    """Times of `ours` and of baselines, in records with 'name', 'graph', 'dtype', 'shape' (its kind) and 'plan'.

    draw(count, seed, small): returns the shapes, small ones without a GPU. measure(shape, dtype, …): returns the
    records of one shape. sizes: the columns that identify a shape. by: columns whose values are separate cases, such as
    the direction. more(times, ms): further columns of a case, from its records by name and our time in ms. shown: the
    columns that the table of the worst cases shows between the way of timing and our time, and after the ratio.
    expected: returns True for an error that needs no mention, because a candidate does not support the shape.
    """

    study: Study
    ours: str
    draw: Callable[..., Sequence[Any]]
    measure: Callable[..., list[Record]]
    sizes: tuple[str, ...]
    more: Callable[[pandas.DataFrame, float], Record]
    shown: tuple[tuple[str, ...], tuple[str, ...]]
    by: tuple[str, ...] = ()
    expected: Callable[[Record], bool] = lambda record: False

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add --random, --seed and --seconds to the options of the topic's study."""
        parser.add_argument("--random", type=count, metavar="N", help="N random shapes instead")
        parser.add_argument("--seed", type=int, default=7, help="of the random shapes; default: %(default)s")
        parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other one after so long")

    def run(
        self,
        count: int,
        seed: int,
        dtype: torch.dtype,
        out: Path | None = None,
        *,
        autotuned: int | None = None,
        seconds: float = float("inf"),
        **options: Any,
    ) -> list[Record]:
        """Measure what the file lacks for this machine, commit, seed and dtype; return the new records.

        autotuned: how many of the first shapes a second pass measures, if there is one; `measure` then gets
        `autotuned`, False or True. seconds: start no further shape after this time. options: for `measure`.
        """
        shapes = self.draw(count, seed, small=this_machine().device != "cuda")
        items: list[tuple[tuple, Any]] = [((index,), (shape, {})) for index, shape in enumerate(shapes)]
        if autotuned is not None:
            both = ((False, shapes), (True, shapes[:autotuned]))
            items = [
                ((i, again), (shape, {"autotuned": again})) for again, some in both for i, shape in enumerate(some)
            ]
        keys = ("index",) if autotuned is None else ("index", "autotuned")
        return self.study.go_on(
            items,
            keys,
            lambda item: self.measure(item[0], dtype, **item[1], **options),
            out,
            same={"seed": seed, "dtype": str(dtype).removeprefix("torch.")},
            here=PLACE,
            seconds=seconds,
        )

    def report(self, new: list[Record]) -> None:
        """Print which new records failed, and the shapes at which ours is slowest relative to the best baseline."""
        for record in new:
            if "error" in record and not self.expected(record):
                print(f"{record['name']} at {[record[name] for name in self.sizes]}: {record['error'][:150]}")
        rows = frame(new)
        if self._timed(rows):
            found = self.ratios(rows)
            print(f"\n{self.summary(found)}\n\nThe worst:\n{self.worst(found)}\n")

    def _timed(self, rows: pandas.DataFrame) -> bool:
        return "median_ms" in rows and bool(rows["median_ms"][rows["name"] == self.ours].notna().any())

    def ratios(self, rows: pandas.DataFrame, dtype: str | None = None) -> pandas.DataFrame:
        """Return one row per shape, case and way of timing: our `ms`, the `best` baseline, and `ratio`, the baseline's
        time over ours (above 1 if ours is faster).

        If a shape has a second, 'autotuned' pass, that pass counts, since it includes more baselines. rows: of one
        machine. dtype: by default that of the first row. ValueError if no record is of ours.
        """
        import pandas

        if not self._timed(rows):
            raise ValueError(f"no record here has a time of {self.ours}: the study times it on a GPU")
        rows = rows[(rows["dtype"] == (dtype or rows["dtype"].iloc[0])) & rows["median_ms"].notna()]
        rows = rows.assign(autotuned=rows["autotuned"] if "autotuned" in rows else False)
        case = ["graph", *self.by, *self.sizes]
        rows = rows.drop_duplicates([*case, "autotuned", "name"], keep="last")
        found = []
        for values, same in rows.groupby(case, sort=False):
            times = same[same["autotuned"] == same["autotuned"].max()].set_index("name")
            baselines = times["median_ms"].drop(self.ours, errors="ignore")
            if self.ours not in times.index or baselines.empty:
                continue
            ms, first = times["median_ms"][self.ours], times.iloc[0]
            told: Record = {"shape": first["shape"], "plan": first.get("plan", "")} | dict(
                zip(case, values, strict=True)
            )
            told |= {"ms": ms, "best": baselines.idxmin(), "ratio": baselines.min() / ms}
            found.append(told | self.more(times, ms))
        return pandas.DataFrame(found)

    def summary(self, table: pandas.DataFrame) -> str:
        """Summarize how often and by how much ours is faster, one row per kind of shape, case and way of timing."""
        import pandas

        lines = []
        for (graph, *case, kind), rows in table.groupby(["graph", *self.by, "shape"]):
            line = {"timed": "graph" if graph else "call"} | dict(zip(self.by, case, strict=True))
            line |= {"shapes": kind, "n": len(rows), "geometric mean": f"{geometric_mean(rows['ratio']):.3f}"}
            line |= {"least": f"{rows['ratio'].min():.2f}", "below 1": int((rows["ratio"] < 1).sum())}
            if "eager" in rows:
                line["below 0.98 × eager"] = int((rows["eager"] < 0.98).sum())
            lines.append(line)
        return pandas.DataFrame(lines).to_string(index=False)

    def worst(self, table: pandas.DataFrame, n: int = 10) -> str:
        """Return the `n` rows with the smallest ratio, worst first, with the plan that was used."""
        rows = table.sort_values("ratio").head(n)
        rows = rows.assign(timed=rows["graph"].map({True: "graph", False: "call"}))
        before, behind = self.shown
        columns = ["timed", *before, "ms", "best", "ratio", *behind, "plan"]
        digits = {name: f"{{:.{4 if name == 'ms' else 2}f}}".format for name in ("ms", "ratio", *behind)}
        return str(rows[columns].to_string(index=False, formatters=digits, max_colwidth=90))


def geometric_mean(ratios: pandas.Series) -> float:
    """Return the geometric mean, which is 1 for the ratios a and 1/a."""
    import numpy

    return float(numpy.exp(numpy.log(ratios).mean()))
