"""Read the configurations in tuned/*.json, found by measurement or, if a file says so, from compile-time facts."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from labs_helpers.gemm.time_model import TimeModel, read

FOLDER = Path(__file__).with_name("tuned")


@functools.cache
def tuned(kernel: str, dtype, gpu: str = "nvidia-h200") -> tuple[dict, ...]:
    """Return the entries for one kernel and GPU: dicts with M, N, K, config, measured, gpu, triton, dtype.

    Without entries for `dtype` it returns those for float16, which has the same tiles. Raises KeyError, which names the
    existing ones, for a kernel or GPU without entries.
    """
    path = FOLDER / f"{gpu}.json"
    if not path.is_file():
        there = sorted(path.stem for path in FOLDER.glob("*.json"))
        raise KeyError(f"no tuned configurations for {gpu!r}; there are {there}")
    entries = [entry for entry in json.loads(path.read_text()) if entry["kernel"] == kernel]
    if not entries:
        raise KeyError(f"no tuned configurations of {kernel!r} in {path.name}")
    wanted = str(dtype).removeprefix("torch.")
    return tuple(e for e in entries if e["dtype"] == wanted) or tuple(e for e in entries if e["dtype"] == "float16")


@functools.cache
def time_model(kernel: str, dtype, machine: str, make: Any) -> TimeModel | None:
    """Return the model of a kernel's times, fitted to sweeps of this machine or else of an H200; None without one.

    Without a model for `dtype` it returns that for float16. machine: its label. make: the class of the configurations.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    for gpu in (slug, "nvidia-h200"):
        for name in (str(dtype).removeprefix("torch."), "float16"):
            path = FOLDER / f"model-{kernel}-{name}.{gpu}.json"
            if path.is_file():
                return read(path, make)
    return None
