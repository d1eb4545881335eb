"""Load recorded sweeps as tables, and use one as a bench that answers a search in place of a GPU."""

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
    """Return a machine's recorded times, one row per kernel, shape and configuration; NaN if it did not run."""
    return _table(machine, "measure", "measured")


def held_out(machine: str = "nvidia-h200", layout: str = "rows"):
    """Return recorded times at shapes that no rule was fitted to, for one layout of the matrices, as in `measured`."""
    return _table(machine, "held-out", "held out", layout)


def long_runs(machine: str = "nvidia-h200"):
    """Return the records of `long_runs.measure_long`: the same kernels in short and long measurements."""
    return _table(machine, "long", "long")


def wave_curve(machine: str = "nvidia-h200"):
    """Return the records of `sweep waves`: the times of one configuration, in order of M."""
    return _table(machine, "waves", "waves").sort_values("M", ignore_index=True)


def compiled():
    """Return the compiler's report on each configuration for sm_75, sm_80 and sm_90, one row each."""
    return _table("compiled", "compile", "compiled")


def _table(machine: str, what: str, kind: str, layout: str | None = None):
    path = find(STUDY.name, machine)
    file = machine, path, path.stat().st_mtime_ns if path.exists() else 0
    return _read(file, f"{STUDY.command} {what}", kind, layout).copy()


@cache
def _read(file: tuple, command: str, kind: str, layout: str | None):
    """Return the latest row of each measurement of one kind, with the configurations' numbers as integers."""
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
    machine, *_ = file  # path and modification time only distinguish the tables in the cache
    return Study(STUDY.name, command).load(machine)


def config_of(row) -> Config:
    """Return the Config of a row of either table."""
    return Config(**{field: int(row[field]) for field in FIELDS})


def shapes(frame, kernel: str = "fused_matmul") -> list[tuple[int, int, int]]:
    """Return the (M, N, K) at which a kernel was measured, in the order of the record."""
    rows = frame[frame["kernel"] == kernel].drop_duplicates(["M", "N", "K"])
    return [tuple(map(int, shape)) for shape in rows[["M", "N", "K"]].to_numpy()]


def out_of_resources(told: str = "") -> Exception:
    """Build Triton's own OutOfResources exception. told: its recorded text, which contains the numbers."""
    from triton.runtime.errors import OutOfResources

    required, limit = (int(number) for number in re.findall(r": (\d+)", told)[:2] or (245760, 232448))
    return OutOfResources(required, limit, "shared memory")


class Recorded:
    """A bench for one kernel and shape that runs nothing and returns recorded times.

    run(config) returns a vector that differs from `expected` by the recorded relative error in each element. (The
    record holds only the norm of the error, and `bound` is the error that the sweep allowed.) If the kernel could not
    run, it raises Triton's OutOfResources, like a GPU. measure(config) returns the recorded median in ms, or math.inf
    without one. `ran` and `timed` list the configurations passed to them, in order.
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
        """Return the recorded median in ms, without counting it as a measurement."""
        ms = self.rows[config].get("median_ms", math.nan)
        return math.inf if math.isnan(ms) else float(ms)

    def best(self) -> tuple[Config, float]:
        """Return the fastest configuration and its time in ms."""
        config = min(grid(), key=self.time)
        return config, self.time(config)

    def ranking(self) -> list[Config]:
        """Return the configurations that ran, the fastest first."""
        return sorted((config for config in self.rows if math.isfinite(self.time(config))), key=self.time)

    def _relative_error(self, config: Config) -> float:
        row = self.rows[config]
        if isinstance(row.get("error"), str):
            return float(re.search(r"[\d.e+-]+$|nan|inf", row["error"])[0])
        return row["relative_error"]
