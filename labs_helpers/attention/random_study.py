"""Time `flash_attention` and PyTorch's implementations at random shapes: `attention.study --random 100 --seed 7`.

Each candidate is compared with float64 before it is timed: as a call with a cold L2 cache, and from a CUDA graph,
without host time and with a warm L2 cache. Without a GPU, shapes are small, and ours is compared but not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from labs_helpers.attention.baselines import BACKENDS, CUDNN, FLASH, OURS
from labs_helpers.attention.error_study import reference, relative_error
from labs_helpers.attention.flash import flash_attention
from labs_helpers.attention.plan import plan
from labs_helpers.attention.random_shapes import KINDS, Shape, random_shapes
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.ratios import draw_ratios
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.random_study import RandomStudy
from labs_helpers.measure.study import Study
from labs_helpers.measure.timing import MeasurementError, Timing, measure_rounds

if TYPE_CHECKING:
    import pandas

STUDY = "attention-random"
BOUNDS = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-5}  # ‖error‖ / ‖reference‖, as in study.py
Way = Callable[[Tensor, Tensor, Tensor], Tensor]


def ways(shape: Shape) -> dict[str, Way]:
    """Return name → function (q, k, v) → o for ours and for `scaled_dot_product_attention` with each back end."""
    return {OURS: lambda q, k, v: flash_attention(q, k, v, causal=shape.causal)} | {
        name: partial(_sdpa, name, shape) for name in BACKENDS if this_machine().device == "cuda" or name == FLASH
    }


def _sdpa(name: str, shape: Shape, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Call SDPA. Its `is_causal` starts from the top left, so decoding with several queries needs an explicit mask."""
    from torch.nn.attention import sdpa_kernel
    from torch.nn.attention.bias import causal_lower_right

    mask: Any = None
    if shape.causal and 1 < shape.Lq < shape.Lk:
        mask = causal_lower_right(shape.Lq, shape.Lk)
        if name == CUDNN:  # cuDNN needs a matrix instead of this bias
            mask = torch.ones(shape.Lq, shape.Lk, dtype=torch.bool, device=q.device).tril(shape.Lk - shape.Lq)
    with sdpa_kernel(BACKENDS[name]):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=shape.causal and shape.Lq == shape.Lk, enable_gqa=shape.H != shape.Hkv
        )


def measure_shape(shape: Shape, dtype: torch.dtype, rounds: int = 3, ms: float = 15) -> list[dict]:
    """Return one record per candidate, direction and kind of timing, with times in ms; 'decode' has no backward pass.

    A candidate that fails, or differs from float64, has an `error` and no time. ms: measuring time per candidate over
    all rounds.
    """
    here = this_machine()
    directions = ("forward",) if shape.kind == "decode" else ("forward", "backward")
    generator = torch.Generator(here.device).manual_seed(shape.Lq + shape.Lk)
    q, k, v, do = (
        torch.randn(shape.B, heads, length, shape.D, dtype=dtype, device=here.device, generator=generator)
        for heads, length in ((shape.H, shape.Lq), (shape.Hkv, shape.Lk), (shape.Hkv, shape.Lk), (shape.H, shape.Lq))
    )
    if "backward" in directions:
        q, k, v = (t.requires_grad_() for t in (q, k, v))
    common: dict[str, Any] = {"study": STUDY, "shape": shape.kind} | shape._asdict() | {"bytes": shape.bytes()}
    common["dtype"] = str(dtype).removeprefix("torch.")
    common["plan"] = str(plan(q, k, v, shape.causal))
    corners = [_corner(shape, *where) for where in {(0, 0), (shape.B - 1, shape.Hkv - 1)}]
    exact = [_exact([t[part] for t, part in zip((q, k, v, do), corner, strict=True)], shape) for corner in corners]
    stream = torch.cuda.Stream() if here.device == "cuda" else None

    def call_of(direction: str, way: Way) -> Callable[[], Any]:
        """Return the timed call. The backward pass needs a forward pass and leaves that were created on its own stream.

        Autograd runs a backward pass on its forward pass's stream, and synchronizes with the stream that first used a
        leaf.
        """
        if direction == "forward":
            return partial(way, q, k, v)
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        return partial(torch.autograd.grad, way(*leaves), leaves, do, retain_graph=True)

    records, calls, errors, all_ways = [], {}, {}, ways(shape)
    for name, way in all_ways.items():
        try:
            got = [way(q, k, v).detach()]
            if "backward" in directions:
                calls["backward", name] = call_of("backward", way)
                got += calls["backward", name]()
            wrong = [0.0] * len(got)
            for corner, right in zip(corners, exact, strict=True):
                parts = [t[part] for t, part in zip(got, (corner[0], *corner[:3]), strict=False)]
                wrong = [max(w, relative_error(t, e)) for w, t, e in zip(wrong, parts, right, strict=False)]
            if not max(wrong) < BOUNDS[common["dtype"]]:
                raise ValueError("wrong: relative errors of o, dq, dk, dv " + ", ".join(f"{w:.2g}" for w in wrong))
        except Exception as error:  # a candidate that cannot run is a result of the study
            calls.pop(("backward", name), None)
            records.append(common | {"name": name, "error": f"{type(error).__name__}: {error}".splitlines()[0][:300]})
            continue
        calls["forward", name] = call_of("forward", way)
        for direction, found in (("forward", wrong[:1]), ("backward", wrong[1:])):
            errors[direction, name] = max(found, default=0.0)
    del exact
    for direction in directions:
        chosen = {name: call for (d, name), call in calls.items() if d == direction}
        known = common | {"direction": direction, "flops": shape.flops(direction)}
        if here.interpreted:
            interpreted = {OURS} & chosen.keys()
            records += [known | {"name": name, "relative_error": errors[direction, name]} for name in interpreted]
            chosen.pop(OURS, None)
        for graph in (False, True) if stream is not None else (False,):
            again = {name: partial(call_of, direction, all_ways[name]) for name in chosen}
            timed = _timed_in_graphs(again, stream, ms) if graph else _timed(chosen, rounds, ms)
            for name, t in timed.items():
                told = {"error": t} if isinstance(t, str) else t.record() | {"relative_error": errors[direction, name]}
                records.append(known | {"name": name, "graph": graph, "rounds": rounds} | told)
    return records


def _corner(shape: Shape, batch: int, kv_head: int) -> tuple:
    """Return the indices of one K/V head and its query heads in q, k, v and do."""
    group = shape.H // shape.Hkv
    heads = (slice(batch, batch + 1), slice(kv_head * group, (kv_head + 1) * group))
    keys = (slice(batch, batch + 1), slice(kv_head, kv_head + 1))
    return heads, keys, keys, heads


def _exact(operands: list[Tensor], shape: Shape) -> list[Tensor]:
    if shape.kind != "decode":
        return reference(*operands, shape.causal)
    from labs_helpers.attention import torch_reference

    return [torch_reference.attention_forward(*(t.detach().double() for t in operands[:3]), shape.causal)[0]]


def _timed(calls: dict[str, Callable], rounds: int, ms: float) -> dict[str, Timing | str]:
    """Return the times of the calls in ms, or an error message."""
    try:
        return dict(measure_rounds(calls, rounds=rounds, warmup_ms=4, repeat_ms=ms, min_runs=rounds))
    except MeasurementError as error:
        return {str(error).split(" failed")[0]: str(error)[:300]}


def _timed_in_graphs(made: dict[str, Callable], stream, ms: float) -> dict[str, Timing | str]:
    """Return times in ms from CUDA graphs captured on the stream; each call is created on it first."""
    found: dict[str, Timing | str] = {}
    for name, make in made.items():
        torch.cuda.synchronize()
        try:
            with torch.cuda.stream(stream):
                call = make()
            found[name] = Timing.of(_graph_samples(call, stream, ms))
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    torch.cuda.synchronize()
    return found


def _graph_samples(call: Callable, stream, ms: float, replays: int = 8) -> list[float]:
    """Return ms per call for each replay of a graph with several calls, so that all replays take about `ms`."""
    with torch.cuda.stream(stream):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        begin.record()
        call()
        end.record()
        stream.synchronize()
        times = max(1, min(round(ms / replays / max(begin.elapsed_time(end), 1e-3)), 200))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(times):
                call()
        graph.replay()
        samples = []
        for _ in range(replays):
            begin.record()
            graph.replay()
            end.record()
            stream.synchronize()
            samples.append(begin.elapsed_time(end) / times)
    return samples


def _more(times: pandas.DataFrame, ms: float) -> dict[str, Any]:
    first = times.iloc[0]
    rate = first["bytes"] / ms / 1e9 if first["direction"] == "forward" else float("nan")
    return {"flops": first["flops"], "TB/s": rate, "mask": "causal" if first["causal"] else "full"}


SIZES = ("B", "H", "Hkv", "Lq", "Lk", "D")
RANDOM = RandomStudy(
    Study(STUDY, "python -m labs_helpers.attention.study --random 100 --seed 7"),
    OURS,
    random_shapes,
    measure_shape,
    (*SIZES, "causal"),
    _more,
    shown=(("direction", "shape", *SIZES, "mask"), ("TB/s",)),
    by=("direction",),
    expected=lambda record: record["name"] != OURS and not record["error"].startswith("ValueError: wrong"),
)
run, load, ratios, summary = RANDOM.run, RANDOM.study.load, RANDOM.ratios, RANDOM.summary


@beside_yours(STUDY)
def draw_random(frame: pandas.DataFrame, dtype: str | None = None) -> Figure:
    """Plot the best baseline's time over ours against the operations, one point per shape and direction."""
    looks = {
        f"{kind}, {direction}": ({"shape": kind, "direction": direction}, role, 3 * (direction == "backward"))
        for role, kind in enumerate(KINDS)
        for direction in ("forward", "backward")
    }
    return draw_ratios(ratios(frame, dtype), looks, "passes", "operations", recorded_on(frame))
