"""Turn a run's measurements into records: one per tensor-parallel group, and one with the loss curve."""

from __future__ import annotations

import resource
import sys
from typing import Any, NamedTuple

import numpy as np

from labs_helpers.measure.study import Study
from labs_helpers.training.settings import Settings
from labs_helpers.training.traffic import formula
from labs_helpers.training.trainer import Trainer
from labs_helpers.transformer.counts import parameters

STUDY = Study("train_2d", "mpirun -n 8 python -m mpi4py mpi_scripts/train_2d.py --dp 2 --tp 4")
COLUMNS = (  # the columns of `table`: heading, key, unit
    ("ms per step", "step_ms", 1),
    ("KB sent", "bytes_sent", 1e3),
    ("by formula", "bytes_by_formula", 1e3),
    ("messages", "messages_sent", 1),
    ("by formula", "messages_by_formula", 1),
    ("weights KB", "parameter_bytes", 1e3),
    ("gradients KB", "gradient_bytes", 1e3),
    ("AdamW KB", "optimizer_bytes", 1e3),
    ("peak RSS MB", "peak_rss_bytes", 1e6),
)
MEMORY = ("parameter_bytes", "optimizer_bytes", "peak_rss_bytes")
WARM_UP = 1  # untimed steps; the first one allocates memory and loads code


class Measured(NamedTuple):
    """One rank's measurements: bytes and messages per step, the number of gradient buckets, and memory in bytes."""

    step_s: list[float]
    bytes_sent: int
    messages_sent: int
    buckets: int
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    peak_rss_bytes: int
    peak_device_bytes: int | None


def measured(trainer: Trainer, step_s: list[float]) -> Measured:
    """Return this rank's measurements. step_s: the seconds of each step in this process."""
    import torch

    model, device = trainer.part.model, trainer.place.device
    tensors = [tensor for state in trainer.update.optimizer.state.values() for tensor in state.values()]
    return Measured(
        step_s[WARM_UP:],
        *trainer.sent,
        trainer.update.buckets if trainer.dp.size > 1 else 0,
        sum(p.nbytes for p in model.parameters()),
        sum(p.grad.nbytes for p in model.parameters() if p.grad is not None),
        sum(tensor.nbytes for tensor in tensors),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        torch.cuda.max_memory_allocated() if device != "cpu" else None,
    )


def run_record(settings: Settings) -> dict[str, Any]:
    """Return the fields that all records of a run share."""
    config = settings.config
    names = "dp pp tp scheme sequence_parallel schedule chunks zero checkpoint_activations".split()
    names += "way bucket_mb threads dtype data batch length seed".split()
    shape = {name: getattr(config, name) for name in ("vocabulary", "layers", "width", "heads", "kv_heads", "hidden")}
    size = {"parameters": sum(parameters(config).values())}
    size["micro_batches"] = settings.micro_batches_per_step
    return {"study": STUDY.name, **{name: getattr(settings, name) for name in names}, **shape, **size}


def group_record(settings: Settings, dp_idx: int, pp_idx: int, ranks: dict[int, Measured]) -> dict[str, Any]:
    """Return the record of one tensor-parallel group, with the slowest rank's times and the largest other values.

    ranks: by rank number. The record has no bytes if this process ran no step, and no times if it ran only one.
    counted: "messages", each counted, or "calls", whose messages are computed for a ring. peak_rss_bytes: of the
    process, with Python and PyTorch.
    """
    each = list(ranks.values())
    record = run_record(settings) | {"kind": "group", "dp_idx": dp_idx, "pp_idx": pp_idx, "ranks": list(ranks)}
    if all(one.step_s for one in each):
        times = np.median([one.step_s for one in each], axis=1)
        slowest = 1e3 * np.array(each[int(times.argmax())].step_s)
        record |= {"timed_steps": len(slowest), "step_ms": np.median(slowest)}
        record |= {f"step_p{share}_ms": np.percentile(slowest, share) for share in (20, 80)}
    if all(one.gradient_bytes for one in each):
        by_formula = formula(settings, pp_idx, each[0].buckets)
        record |= {
            "counted": "messages" if settings.way == "own" else "calls",
            "bytes_sent": max(one.bytes_sent for one in each),
            "bytes_by_formula": by_formula[0],
            "messages_sent": max(one.messages_sent for one in each),
            "messages_by_formula": by_formula[1],
            "gradient_bytes": max(one.gradient_bytes for one in each),
        }
    memory = {name: max(getattr(one, name) for one in each) for name in MEMORY}
    return record | memory | {"peak_device_bytes": max(one.peak_device_bytes or 0 for one in each) or None}


def table(records: list[dict[str, Any]]) -> str:
    """Format one line per tensor-parallel group, with a dash for values that were not measured."""
    lines = ["  ".join(["ranks", *(heading for heading, _, _ in COLUMNS)])]
    for record in (record for record in records if record["kind"] == "group"):
        ranks = "-".join(str(rank) for rank in dict.fromkeys((record["ranks"][0], record["ranks"][-1])))
        cells = [f"{ranks:<5}"]
        for heading, key, unit in COLUMNS:
            value = record[key] / unit if key in record else None
            shown = "-" if value is None else f"{value:.0f}" if unit == 1e6 or value == int(value) else f"{value:.1f}"
            cells.append(f"{shown:>{len(heading)}}")
        lines.append("  ".join(cells))
    return "\n".join(lines)
