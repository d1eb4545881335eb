"""Compare exercise 12's formula with recorded steps, and apply it to links without records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas

from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.tensor_parallel import study
from labs_helpers.tensor_parallel.predict import config_of, costs
from labs_helpers.tensor_parallel.records import links, select
from labs_helpers.transformer.counts import parameters

H200, CPU = "nvidia-h200", "4-core CPU"
MESSAGE = 2**26  # bytes of a layer's all-reduce: 8 sequences of 2,048 tokens, width 2,048, 16 bits
CLUSTER_BUSBW, MFU = 50e9, 0.5  # 400 Gb/s per GPU


def thresholds(share: Callable[[int, int, float, float], float]) -> pandas.DataFrame:
    """Return one row per machine: TFLOP/s per rank, busbw in GB/s, and the ratio of communication to compute.

    The ratio comes from share(width, tp, FLOP/s, bytes/s) and from the records, with the middle 60% of the steps; NaN
    if it was not measured.
    """
    rows = [*_gpus(), *_cpus()]
    rows += [
        ("400 Gb/s, 50% MFU", 2048, 4, MFU * DATASHEET["H200"].fp16_flops, CLUSTER_BUSBW, 2, None),
        ("NVLink as measured, 50% MFU", 8192, 8, MFU * DATASHEET["H200"].fp16_flops, rows[0][4], 2, None),
    ]
    found = []
    for where, width, tp, flops, busbw, itemsize, step in rows:
        line = {"where": where, "width": width, "tp": tp, "TFLOP/s": flops / 1e12, "GB/s": busbw / 1e9}
        line["formula"] = share(width, tp, flops, busbw) * itemsize / 2
        for name, key in (("measured", "step_ms"), ("from", "step_p20_ms"), ("to", "step_p80_ms")):
            line[name] = float("nan") if step is None else step[key] / step["alone_ms"] - 1
        found.append(line)
    return pandas.DataFrame(found).set_index("where")


def _achieved(step: Any) -> float:
    """Return a rank's FLOP/s in the step without communication: 6 FLOPs per token and matrix parameter."""
    config = config_of(step)
    products = sum(parameters(config).values()) - (0 if config.tied else config.vocabulary * config.width)
    tokens = step["batch"] / step["dp"] * step["length"]
    return float(6 * products * tokens / step["tp"] / (step["alone_ms"] / 1e3))


def _gpus() -> Iterator[tuple]:
    """Yield our steps on four H200s without sequence parallelism, eager or compiled block by block."""
    rows = study.load(H200)
    rows = rows[rows["world_size"] == rows["world_size"].max()]
    steps = rows[(rows["kind"] == "gpu_step") & rows["step_ms"].notna()]
    for name in ("sequence_parallel", "average", "whole"):
        steps = steps[~steps[name].astype(bool)]
    for (dp, tp, compiled), both in steps[steps["tp"] > 1].groupby(["dp", "tp", "compiled"]):
        last = {library: one.iloc[-1] for library, one in both.groupby("library")}
        step = last["ours"].to_dict() | {"alone_ms": last["compute alone"]["step_ms"]}
        calls = rows[(rows["kind"] == "all_reduce") & (rows["group"] == "tp") & (rows["ranks"] == tp)]
        call = calls[calls["bytes"] == MESSAGE].iloc[-1]
        busbw = 2 * (tp - 1) / tp * MESSAGE / (call["call_ms"] / 1e3)
        name = f"{dp:.0f} × {tp:.0f} H200, {'compiled' if compiled else 'eager'}"
        yield name, int(step["width"]), int(tp), _achieved(step | {"dp": dp}), busbw, 2, step


def _cpus() -> Iterator[tuple]:
    """Yield the study's 1 × 8 step over each link, in float32."""
    rows = study.load(CPU)
    for link in links(rows):
        step = select(rows, "step", link=link, dp=1, scheme="megatron", sequence_parallel=False)
        step = step[step["length"] == step["length"].max()].iloc[-1].to_dict()
        inside, cable = costs(rows, link)
        yield f"1 × 8 on 4 cores, {link}", int(step["width"]), 8, _achieved(step), 1 / (cable or inside).beta, 4, step
