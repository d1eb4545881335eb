"""The recorded sweeps as tables, and one of them as a bench: what a search asks of a GPU, answered from the record."""

from __future__ import annotations

import math
import re
from functools import cache

import torch

from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.tuning.operands import TOLERANCE
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.measure.records import find
from labs_helpers.measure.study import Study

FIELDS = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_warps", "num_stages")
STUDY = Study("gemm-tuning", "python -m labs_helpers.gemm.tuning.sweep")


def measured(machine: str = "nvidia-h200"):
    """The recorded times of one machine, a row a kernel, shape and configuration; NaN where it did not run."""
    return _table(machine, "measure", "measured")


def held_out(machine: str = "nvidia-h200", layout: str = "rows"):
    """The recorded times at shapes that no rule was fitted to, of one layout of the matrices; rows as in `measured`."""
    return _table(machine, "held-out", "held out", layout)


def long_runs(machine: str = "nvidia-h200"):
    """The same kernels timed shortly and for long: what `long_runs.measure_long` recorded, a row each."""
    return _table(machine, "long", "long")


def wave_curve(machine: str = "nvidia-h200"):
    """The times of one configuration, row of tiles by row of tiles, in order of M: what `sweep waves` records."""
    return _table(machine, "waves", "waves").sort_values("M", ignore_index=True)


def compiled():
    """What the compiler made of each configuration for sm_75, sm_80 and sm_90, a row each."""
    return _table("compiled", "compile", "compiled")


def _table(machine: str, what: str, kind: str, layout: str | None = None):
    path = find(STUDY.name, machine)
    file = machine, path, path.stat().st_mtime_ns if path.exists() else 0
    return _read(file, f"{STUDY.command} {what}", kind, layout).copy()


@cache
def _read(file: tuple, command: str, kind: str, layout: str | None):
    """The latest row of each thing measured, of one kind; the configuration's numbers are whole where all have one."""
    frame = _file(file, command)
    frame = frame[frame["kind"] == kind]
    if layout is not None:
        frame = frame[(frame["layout"].fillna("rows") if "layout" in frame else "rows") == layout]
    known = [name for name in ("kernel", "how", "target", "M", "N", "K", *FIELDS) if name in frame]
    frame = frame.drop_duplicates(known, keep="last").reset_index(drop=True)
    whole = [field for field in FIELDS if frame[field].notna().all()]
    return frame.astype(dict.fromkeys(whole, int))


@cache
def _file(file: tuple, command: str):
    machine, *_ = file  # the path and its time of change only tell one table in the cache from another
    return Study(STUDY.name, command).load(machine)


def config_of(row) -> Config:
    """The Config of a row of either table."""
    return Config(**{field: int(row[field]) for field in FIELDS})


def shapes(frame, kernel: str = "fused_matmul") -> list[tuple[int, int, int]]:
    """The (M, N, K) at which a kernel was measured, in the order of the record."""
    rows = frame[frame["kernel"] == kernel].drop_duplicates(["M", "N", "K"])
    return [tuple(map(int, shape)) for shape in rows[["M", "N", "K"]].to_numpy()]


def out_of_resources(told: str = "") -> Exception:
    """Triton's own exception, a RuntimeError no more than a ValueError; told: its recorded text, with the numbers."""
    from triton.runtime.errors import OutOfResources

    required, limit = (int(number) for number in re.findall(r": (\d+)", told)[:2] or (245760, 232448))
    return OutOfResources(required, limit, "shared memory")


class Recorded:
    """The sweep of one kernel and shape, answered from the record: nothing runs, and every time is a recorded one.

    run(config) gives a vector that is off from `expected` by the recorded error, as a share of each element (the record
    holds the norm of the error alone, and `bound` is what the sweep allowed it), and raises Triton's OutOfResources,
    as a GPU does, where the kernel could not run; measure(config) gives the recorded median in ms, math.inf where
    there is none. `ran` and `timed` list what was asked, in order.
    """

    def __init__(self, frame, kernel: str, shape: tuple[int, int, int]):
        M, N, K = shape
        rows = frame[(frame["kernel"] == kernel) & (frame["M"] == M) & (frame["N"] == N) & (frame["K"] == K)]
        if rows.empty:
            raise ValueError(f"{kernel} at {M}×{N}×{K} is not in the record; there are {shapes(frame, kernel)}")
        self.kernel, self.shape = kernel, shape
        self.rows = {config_of(row): row for row in rows.to_dict("records")}
        self.expected = torch.linspace(1, 2, 16, dtype=torch.float64)
        self.bound = TOLERANCE * self.expected
        self.ran: list[Config] = []
        self.timed: list[Config] = []

    def run(self, config: Config):
        self._start(config)
        return self.expected * (1 + self._relative_error(config))

    def _start(self, config: Config) -> None:
        self.ran.append(config)
        error = self.rows[config].get("error")
        if isinstance(error, str) and not error.startswith("wrong"):
            raise out_of_resources(error)

    def measure(self, config: Config) -> float:
        self.timed.append(config)
        return self.time(config)

    def time(self, config: Config) -> float:
        """The recorded median in ms, without being counted as a measurement."""
        ms = self.rows[config].get("median_ms", math.nan)
        return math.inf if math.isnan(ms) else float(ms)

    def best(self) -> tuple[Config, float]:
        """The fastest configuration and its time in ms."""
        config = min(grid(), key=self.time)
        return config, self.time(config)

    def ranking(self) -> list[Config]:
        """The configurations that ran, the fastest first."""
        return sorted((config for config in self.rows if math.isfinite(self.time(config))), key=self.time)

    def _relative_error(self, config: Config) -> float:
        row = self.rows[config]
        if isinstance(row.get("error"), str):
            return float(re.search(r"[\d.e+-]+$|nan|inf", row["error"])[0])
        return row["relative_error"]
