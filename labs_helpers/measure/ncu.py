"""Read kernels' hardware counters with Nsight Compute (`ncu`), on an NVIDIA GPU whose counters this user may read."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Callable, Mapping

from labs_helpers.launch.process import run

FLAGS = ("--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw")


def look_at(kernels: Callable[[], object]) -> None:
    """Call `kernels` twice: once to compile, and once while ncu counts."""
    import torch

    for look in (False, True):
        if look:
            torch.cuda.cudart().cudaProfilerStart()
        kernels()
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def count(module: str, metrics: Mapping[str, str], timeout: float) -> str:
    """Return ncu's output for `python -m module --kernels`, which calls `look_at`.

    metrics: by ncu's names. Raises FileNotFoundError if `ncu` is not on the PATH, and ProcessFailed if it fails.
    """
    if (ncu := shutil.which("ncu")) is None:
        raise FileNotFoundError("Nsight Compute's `ncu` is not on the PATH; it comes with the CUDA toolkit")
    return run(
        [ncu, *FLAGS, "--metrics", ",".join(metrics), sys.executable, "-m", module, "--kernels"], timeout=timeout
    )


def read(text: str) -> list[dict[str, str]]:
    """Return the rows of ncu's table in `count`'s output, one per kernel."""
    quoted = [line for line in text.splitlines() if line.startswith('"')]  # the others are ncu's and the program's
    return list(csv.DictReader(io.StringIO("\n".join(quoted))))[1:]  # the first row has the units


def values(row: Mapping[str, str], metrics: Mapping[str, str]) -> dict[str, float]:
    """Return the counters of a row. metrics: ncu's name → the record's name."""
    return {key: float(row[metric].replace(",", "")) for metric, key in metrics.items()}
