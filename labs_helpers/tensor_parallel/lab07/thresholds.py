"""What exercise 12's formula says of recorded steps, and of links that no record has."""

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
MESSAGE = 2**26  # bytes of an all-reduce in a layer: 8 sequences of 2,048 tokens of width 2,048 in 16 bits
CLUSTER_BUSBW, MFU = 50e9, 0.5  # 400 Gb/s per GPU


def thresholds(share: Callable[[int, int, float, float], float]) -> pandas.DataFrame:
    """A row per machine: TFLOP/s of a rank, busbw in GB/s, communication over compute by share(width, tp, FLOP/s,
    bytes/s), and as measured, with the middle 60% of the steps; NaN where nothing was."""
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
    """FLOP/s of a rank in the step with its communication left out: 6 per token and parameter of a matrix product."""
    config = config_of(step)
    products = sum(parameters(config).values()) - (0 if config.tied else config.vocabulary * config.width)
    tokens = step["batch"] / step["dp"] * step["length"]
    return float(6 * products * tokens / step["tp"] / (step["alone_ms"] / 1e3))


def _gpus() -> Iterator[tuple]:
    """Of four H200s, ours without sequence parallelism, block by block or eager, as its compute alone was timed."""
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
    """The study's 1 × 8 over each link, in float32."""
    rows = study.load(CPU)
    for link in links(rows):
        step = select(rows, "step", link=link, dp=1, scheme="megatron", sequence_parallel=False)
        step = step[step["length"] == step["length"].max()].iloc[-1].to_dict()
        inside, cable = costs(rows, link)
        yield f"1 × 8 on 4 cores, {link}", int(step["width"]), 8, _achieved(step), 1 / (cable or inside).beta, 4, step
