"""Hidden inputs of lab 01."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden import hidden, normal
from labs_helpers.grading.hidden.values import Near
from labs_helpers.measure.trace import GPU_WORK
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.lab01.hidden.traces import NAMES, Event, drawn_trace, half_waiting
from labs_helpers.transformer.lab01.practice_gpu import Phase, PracticeGPU

PHASES = ("forward", "backward", "update")
DTYPES = ("double", "long int", "float", "float", "int", "c10::BFloat16", "c10::BFloat16", "c10::Half", "bool")


# layers, V, H, half of W / H, F, tied, batch, length, itemsize; in each of them another part weighs most.
SHAPES = (
    (12, 50_304, 12, 32, 2048, 1, 1, 64, 2),
    (3, 50_304, 6, 24, 704, 1, 7, 136, 2),
    (3, 50_304, 6, 24, 704, 0, 1, 16, 4),
    (7, 1024, 5, 48, 112, 1, 1, 16, 2),
    (7, 1024, 5, 48, 112, 1, 29, 72, 4),
    (7, 256, 3, 24, 2000, 1, 17, 56, 4),
    (15, 256, 1, 36, 56, 1, 1, 2000, 4),
    (2, 256, 13, 8, 144, 1, 3, 520, 2),
    (2, 256, 13, 8, 144, 1, 3, 520, 4),
    (1, 1024, 4, 16, 32, 1, 2, 512, 4),
    (7, 16, 2, 60, 40, 1, 96, 24, 2),
)
# growth_interval, good_steps, scale, lr, and what the second step's gradients hold in one of the three tensors.
UPDATES: tuple[tuple[int, int, float, float, int | None, float], ...] = (
    (100, 5, 2.0**10, 0.1, 2, torch.inf),
    (100, 5, 2.0**12, 0.03, 0, -torch.inf),
    (2, 0, 1.0, 0.01, 1, torch.nan),
    (1, 0, 2.0**16, 0.1, None, 0.0),
    (3, 2, 2.0**8, 0.05, None, 0.0),
    (100, 1, 2.0**17, 300.0, None, 0.0),  # a gradient divided by the scale underflows in float16
    (100, 1, 2.0**20, 0.4, 2, 4e4),  # each is finite in float16, their sum is not
)


@hidden("01/1")
def benchmark(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    # The delays of waits repeat after a prime number of waits, of which `runs` is a multiple. Thus it does not
    # matter how often an answer waits.
    for prime, times in ((11, 2), (17, 1), (13, 2)):
        warmup = int(draw.integers(1, 5))
        phases = {name: Phase(int(draw.integers(2, 30)), *map(float, draw.integers(10, 500, 2))) for name in PHASES}
        compile_us, late_us = draw.integers(2000, 40_000, warmup), draw.integers(1, 900, prime)
        gpu = PracticeGPU(**phases, compile_us=compile_us.tolist(), late_us=late_us.tolist())
        found = function(gpu, gpu.synchronize, gpu.clock, warmup, prime * times)
        for name in ("forward", "backward", "step"):  # compared as float32, in which an answer may have computed
            yield [torch.tensor(float(number)) for number in found[name]]


def asked(function: Callable[..., Any], events: list[Event]) -> Any:
    """Return the answer for a trace, and the trace after the call."""
    given = copy.deepcopy(events)
    found = function(given)
    return found, given == events


@hidden("01/2")
def gpu_time(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for number in range(8):
        events = drawn_trace(draw)
        if number > 5:  # only communication, and no event
            left = ("nccl", "none")[number - 6]
            events = [e for e in events if e.get("cat") not in GPU_WORK or e["name"].startswith(left)]
        (launches, *shares), unchanged = asked(function, events)
        yield int(launches), torch.tensor([float(share) for share in shares], dtype=torch.float64), unchanged


@hidden("01/4")
def bound_by(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(100):
        name = str(draw.choice((*NAMES, "aten::bmm", "aten::mm", "aten::addmm", "aten::silu")))
        kinds = [str(kind) for kind in draw.choice(DTYPES, int(draw.integers(1, 4)))]
        shapes: list[Any] = [draw.integers(1, 60, int(draw.integers(1, 4))).tolist() for _ in kinds]
        if name in ("aten::mm", "aten::bmm"):
            M, K, N = (int(2 ** draw.uniform(1, 9)) for _ in range(3))
            batch = draw.integers(2, 9, int(name == "aten::bmm")).tolist()
            shapes, kinds = [[*batch, M, K], [*batch, K, N]], 2 * [str(draw.choice(("float", "c10::Half")))]
        elif draw.random() < 0.5:  # the same number of elements in another order, or a few more
            shapes = [[*draw.permutation(shapes[0]).tolist(), int(draw.integers(1, 3))] for _ in kinds]
        at_roof = 1e6 * sum(4.0 * float(np.prod(shape)) for shape in shapes)  # relative to a bandwidth of 1
        for kind in draw.choice(("Scalar", "", "float", "TensorList"), int(draw.integers(0, 3))):
            shapes, kinds = [*shapes, [[4, 9], [7, 9]] if kind == "TensorList" else []], [*kinds, str(kind)]
        args = {"External id": 3, "Input Dims": shapes, "Input type": kinds}
        operation = {"ph": "X", "cat": "cpu_op", "name": name, "ts": 5.0, "dur": 40.0, "tid": 1, "args": args}
        peak, bandwidth = float(10 ** draw.uniform(10, 14)), float(10 ** draw.uniform(9.5, 12))
        given = copy.deepcopy(operation)
        bound, share = function(given, at_roof / bandwidth * float(draw.uniform(0.3, 5)), peak, bandwidth)
        yield bound, float(share), given == operation
    args = {"External id": 3, "Input Dims": [[], []], "Input type": ["float", "Scalar"]}
    yield function(operation | {"name": "aten::div_", "args": args}, float(draw.uniform(1, 9)), peak, bandwidth)


@hidden("01/5")
def peak_bytes(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for number in range(3 * len(SHAPES)):
        *shape, tied, batch, length, itemsize = SHAPES[number % len(SHAPES)]
        vocabulary, heads, half, hidden_width = (max(1, round(size * draw.uniform(0.9, 1.1))) for size in shape[1:])
        config = TransformerConfig(vocabulary, shape[0], 2 * heads * half, heads, hidden_width, tied=bool(tied))
        yield Near(float(function(config, batch, round(length * draw.uniform(0.9, 1.1)), itemsize)), 0.1)


@hidden("01/6")
def scaled_update(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    shapes = [tuple(draw.integers(2, 7, dimensions)) for dimensions in (2, 1, 3)]
    for interval, good, scale, lr, index, value in UPDATES:
        lr *= float(draw.uniform(0.8, 1.2))
        master = [0.5 * normal(draw, *shape) for shape in shapes]
        weights = [torch.nn.Parameter(tensor.half()) for tensor in master]
        memory = [tensor.data_ptr() for tensor in (*weights, *master)]
        for step in range(4):
            before = [tensor.double() for tensor in master]
            # Each element changes by about a fortieth of a master's size, so that the step itself can be compared.
            size = min(0.0125 * scale / lr, 8000.0)
            gradients = [(size * normal(draw, *shape)).half() for shape in shapes]
            if step == 1 and index is not None:
                gradients[index].view(-1)[: 1 if value != 4e4 else None] = value
            given = [gradient.clone() for gradient in gradients]
            scale, good = function(list(weights), list(master), given, scale, good, lr, interval)
            yield isinstance(scale, Real), float(scale), int(good)
            yield [(now.double() - then).float() for now, then in zip(master, before, strict=True)]
            yield [weight.detach().double() - m.half().double() for weight, m in zip(weights, master, strict=True)]
            yield given, [tensor.requires_grad for tensor in (*weights, *master)]
            yield [tensor.data_ptr() for tensor in (*weights, *master)] == memory


@hidden("01/7")
def place_checkpoints(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(60):
        layers, kept, inside = (int(2 ** draw.uniform(0, most)) for most in (7, 12, 16))
        sizes = [int(size) for size in function(layers, kept, inside)]
        yield len(sizes), sum(sizes), max(sizes), min(sizes) > 0  # which segment is the larger one is free


@hidden("01/8")
def diagnose(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for events in (*(drawn_trace(draw) for _ in range(9)), half_waiting(draw)):
        (parts, slow, why), unchanged = asked(function, events)
        rows = {str(name): [float(number) for number in row] for name, row in parts.items()}
        yield rows, rows[slow][2], why, unchanged


@hidden("01/9")
def mfu(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(30):
        layers, grouped, kv_heads, half = (int(draw.integers(1, most)) for most in (40, 9, 9, 70))
        heads, tied = grouped * kv_heads, bool(draw.integers(2))
        vocabulary, hidden_width, length = (int(2 ** draw.uniform(3, most)) for most in (17, 13, 14))
        config = TransformerConfig(
            vocabulary, layers, 2 * half * heads, heads, hidden_width, kv_heads=kv_heads, tied=tied
        )
        yield [float(found) for found in function(config, length, float(draw.uniform(1e3, 1e6)), 989e12)]
