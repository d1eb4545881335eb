"""Compute the numbers in lab 01's text."""

from __future__ import annotations

from functools import cache

import pandas

from labs_helpers.measure import trace
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.transformer import SIZES, charts, counts, study
from labs_helpers.transformer.lab01 import stretch
from labs_helpers.transformer.lab01.record_traces import recorded
from labs_helpers.transformer.records import launch_us, walked_steps
from labs_helpers.transformer.setups import Setup, treatment, walk
from tests.claims.table import Claim, Given, Table
from tests.transformer.lab01.exercises.ex8_diagnose import diagnose

BIG = SIZES["1b"]
EAGER = Setup(precision="bf16")
SDPA = Setup(precision="bf16", attention="sdpa")


@cache
def records() -> pandas.DataFrame:
    return study.load("nvidia-h200")


def step(setup: Setup, **wanted) -> pandas.Series:
    """The recorded step of one setup and shape."""
    (row,) = charts.timed(records(), setup, **wanted).to_dict("records")
    return pandas.Series(row)


def small(batch: int) -> pandas.Series:
    return step(SDPA, size="small", batch=batch, length=1024)


def at_1k(**setup) -> pandas.Series:
    return step(Setup(precision="bf16", **setup), size="1b", batch=4, length=1024)


def waiting() -> list[float]:
    """µs per launch in the steps of the figure of launches."""
    rows = charts.timed(records(), SDPA, size="small", length=1024)
    return [float(one) for one in launch_us(rows).removesuffix(" µs").split(" to ")]


def mfus() -> list[float]:
    """In percent, by 6 FLOPs per parameter, by the lab's count, and by PaLM's."""
    rate = step(treatment()["by block"], size="1b", length=4096)["tokens_per_s"]
    rule = 6 * sum(counts.parameters(BIG).values())
    ways = rule, counts.flops_per_token(BIG, 4096, causal=True).step, rule + 12 * BIG.layers * BIG.width * 4096
    return [100 * flops * rate / DATASHEET["H200"].fp16_flops for flops in ways]


def counters(kernel: str) -> pandas.Series:
    rows = records()[records()["name"].fillna("").str.startswith(kernel)]
    return rows.drop_duplicates("name", keep="last").iloc[0]


def softmax() -> list[float]:
    """MB, µs and TB/s."""
    row = counters("softmax")
    moved = row["bytes_read"] + row["bytes_written"]
    return [moved / 1e6, row["ns"] / 1e3, moved / row["ns"] / 1e3]


def softmax_in_step() -> float:
    """TB/s of the softmax of the float32 scores in the recorded step: each is read and written."""
    ways = [us for one, us in trace.operations(recorded("step").events) if one["name"] == "aten::_softmax"]
    return 2 * 4 * 4 * 12 * 1024**2 / min(ways) / 1e6


def product() -> list[float]:
    """GFLOP, µs and TFLOP/s."""
    row = counters("fused_matmul")
    return [row["tensor_flops"] / 1e9, row["ns"] / 1e3, row["tensor_flops"] / row["ns"] / 1e3]


def times(kernel: str, counted: str, predicted: str) -> float:
    row = counters(kernel)
    return row[counted] / row[predicted]


def precision(name: str) -> pandas.Series:
    return step(Setup(precision=name, attention="sdpa"), size="small", batch=8, length=1024)


def per_launch() -> float:
    """µs, where launches take all of the time: eager steps of `small`."""
    return 1e3 * precision("fp16")["step_ms"] / precision("fp16")["launches"]


def segmented(count: int) -> pandas.Series:
    return at_1k(segments=count)


def inside() -> float:
    """A layer's activations over its input."""
    kept = counts.saved_activations(BIG, 4, 1024, itemsize=2)
    once = ("tokens and targets", "rotary cos and sin", "log-softmax of the logits")
    layers = sum(nbytes for name, nbytes in kept.items() if name not in once) // BIG.layers
    return layers / (2 * 4 * 1024 * BIG.width)


def saved(order: str, remedy: str) -> float:
    """ms that a remedy takes off the step along an order of them."""
    ms = walked_steps(records(), walk(order), size="small")["step_ms"]
    return (ms.shift() - ms)[remedy]


def treated(remedy: str) -> float:
    return walked_steps(records(), treatment(), size="1b", length=4096)["step_ms"][remedy]


def angles() -> list[float]:
    """µs of the elementwise kernels that make the rotary angles again, and of all elementwise work."""
    events = recorded("step-compiled").events
    again = [us for name, (_, us) in trace.by_operation(events).items() if "_poi_" in name and "_cos_" in name]
    return [sum(again), trace.by_kind(events)["elementwise"]]


def experts(way: str) -> list:
    """[pieces of GPU work, ms in all, µs at work in dispatch, its span]"""
    events = recorded(f"experts-{way}").events
    _, us, span = diagnose(events)[0]["dispatch"]
    pieces = sum(event["cat"] in trace.GPU_WORK for event in events)
    return [pieces, max(event["ts"] + event["dur"] for event in events) / 1e3, us, span]


def waits_for_counts() -> list[float]:
    """How many times the CPU waits in a stream, and µs in all."""
    waits = [e["dur"] for e in recorded("experts-looped").events if e["name"] == "cudaStreamSynchronize"]
    return [len(waits), sum(waits)]


def longest_kernel() -> list[float]:
    events = recorded("experts-batched").events
    return [max(e["dur"] for e in events if e["cat"] == "kernel"), experts("batched")[2]]


def of_qkv() -> list[float]:
    """Percent of the bytes and of the µs of a layer."""
    tensors = stretch.layer_tensors(BIG, 4, 1024)
    own = tensors["q, k and v"]
    every = [sum(column) for column in zip(*tensors.values(), strict=True)]
    return [100 * mine / total for mine, total in zip(own, every, strict=True)]


def slower() -> list[float]:
    """How many times as long a step with checkpoints takes, at the least and at the most."""
    plain = segmented(0)["step_ms"]
    found = [segmented(count)["step_ms"] / plain for count in (1, 2, 4, 8, 16)]
    return [min(found), max(found)]


TABLE = Table(
    claims=(
        Claim("dense 16-bit peak, 989 TFLOP/s", lambda: (16, DATASHEET["H200"].fp16_flops / 1e12)),
        Claim("an MFU of 54%, 58% or 69%", mfus),
        Claim("takes only 1.3 times as long", lambda: small(8)["step_ms"] / small(1)["step_ms"]),
        Claim("needs 22 to 31 µs per launch in", waiting),
        Claim("which launches 2,776", lambda: at_1k()["launches"]),
        Claim(
            "2,776 launches, the step takes 109.4 ms and the GPU works for 103.9",
            lambda: at_1k()[["launches", "step_ms", "gpu_ms"]],
        ),
        Claim(
            "735 launches, it takes 51.1 ms and the GPU works for 49.2",
            lambda: at_1k(attention="sdpa", optimizer="fused", compiled=True)[["launches", "step_ms", "gpu_ms"]],
        ),
        Claim("writes 14% less", lambda: 100 - 100 * times("softmax", "bytes_written", "predicted_written")),
        Claim("250 MB in 210 µs are 1.2 TB/s", softmax),
        Claim("reaches 3.6 TB/s", softmax_in_step),
        Claim("reads 2.2 times its operands", lambda: times("fused_matmul", "bytes_read", "predicted_read")),
        Claim("(960 MB went", lambda: counters("fused_matmul")["l2_bytes"] / 1e6),
        Claim("137 GFLOP in 184 µs are 747 TFLOP/s", product),
        Claim("operands 1.8 times", lambda: times("flash_attention", "bytes_read", "predicted_read")),
        Claim("computes 3% more", lambda: 100 * times("flash_attention", "tensor_flops", "predicted_flops") - 100),
        Claim(
            "launch 1,873 to 1,886 kernels",
            lambda: (precision("bf16-autocast")["launches"], precision("fp16")["launches"]),
        ),
        Claim("at some 30 µs per launch", per_launch),
        Claim("launches 1,657 kernels", lambda: small(8)["launches"]),
        Claim(
            "peaks at 20 GB, 5.7 GB of them",
            lambda: (segmented(0)["peak_bytes"] / 1e9, 3 * 2 * sum(counts.parameters(BIG).values()) / 1e9),
        ),
        Claim("share of the 20 GB", lambda: segmented(0)["peak_bytes"] / 1e9),
        Claim(
            "With 4 segments 54% of",
            lambda: (4, 100 * segmented(4)["peak_bytes"] / segmented(0)["peak_bytes"]),
        ),
        Claim("47 times as large", inside),
        Claim("26 ms less", lambda: treated("compiled") - treated("by block")),
        Claim("492 of the 672 µs", angles),
        Claim("saves 47 ms as the first", lambda: saved("arithmetic first", "bf16")),
        Claim("and 114 ms as the last", lambda: saved("launches first", "bf16")),
        Claim("graph saves 2 ms", lambda: saved("launches first", "graph")),
        Claim("and 7 ms when it waits", lambda: saved("arithmetic first", "graph")),
        Claim("that needs some 30 µs per launch", per_launch),
        Claim(
            "takes 35 to 50 ms whatever",
            lambda: (min(small(n)["step_ms"] for n in (1, 2, 4, 8)), max(small(n)["step_ms"] for n in (1, 2, 4, 8))),
        ),
        Claim(
            "works for 72% of the step, at 16 for 94%", lambda: (100 * small(8)["busy"], 16, 100 * small(16)["busy"])
        ),
        Claim("92 of its 1,451 µs", lambda: experts("looped")[2:]),
        Claim("These 8 waits take only 60 µs", waits_for_counts),
        Claim(
            "34 pieces in 1.7 ms instead of 135 in 5.6 ms", lambda: (*experts("batched")[:2], *experts("looped")[:2])
        ),
        Claim("717 of its 773 µs", longest_kernel),
        Claim("are 6% of the bytes, and cost 19%", of_qkv),
        Claim("about 1.3 to 1.4 times as long", slower),
    ),
    given=(
        Given("'busy' 100% of the time at an MFU of 10%", "an example: one small kernel after another"),
        Given("times 2 FLOPs", "the definition of a multiplication with its addition"),
        Given("is 6 FLOPs per parameter", "a rule of thumb that is quoted"),
        Given("kernels of 10 µs run on two streams, and the second begins 4 µs", "a question to work out by hand"),
        Given("if the second takes only 3 µs", "the same question"),
        Given("rounds up to 512 bytes", "the block of PyTorch's caching allocator"),
        Given("2 + 2 + 12 bytes per parameter", "2 bytes each in 16 bits, 4 each for master and two moments"),
        Given("step of 50 ms shows a busy share of 40%", "a question with made-up numbers"),
        Given("for the CPU 60% of the time", "the rest of that question's 40%"),
        Given("nvidia-smi says 100%", "a question with a made-up number"),
        Given("after another gives 100% too", "the same question"),
        Given("4 + 4 + 8 bytes per parameter", "4 bytes each in float32: parameter, gradient, two moments"),
    ),
)
