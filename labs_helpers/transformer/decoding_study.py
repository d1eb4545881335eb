"""Measure decoding on a GPU: ms per token of several loops and batches, and the time of each kernel.

    python -m labs_helpers.transformer.decoding_study             # about 60 s on an H200
    python -m labs_helpers.transformer.decoding_study --batches 1 --used 4000 --capacity 4096

Lab 01's 1B model in bf16 with random weights and a random cache. Before a loop is timed, its logits are compared with
those of plain PyTorch. The loops take turns.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labs_helpers.launch import program
from labs_helpers.measure import trace
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.race import clock, collected_between, in_turns, wait
from labs_helpers.measure.study import Study
from labs_helpers.measure.timing import Timing
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.compiled_decoding import CompiledStep
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.decode_operations import KERNELS, PLAIN, Operations
from labs_helpers.transformer.decode_step import DecodeStep
from labs_helpers.transformer.decoding import DecodeLoop
from labs_helpers.transformer.kv_cache import KVCache
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import Sampling

if TYPE_CHECKING:
    import pandas

STUDY = Study("transformer-decoding", "python -m labs_helpers.transformer.decoding_study")
load = STUDY.load
DTYPE = torch.bfloat16
STEPS = 40  # per sample; the positions in use grow by one per step, around `used`
DRAWN = Sampling(temperature=0.8, top_k=50, seed=1)
# A layer rounds about 10 times to bfloat16, by 2⁻⁸/√3 of a number on average at most. The errors add up like a random
# walk over 16 layers, in both loops: √2 · √160 · 2⁻⁸/√3 = 0.04. A wrong position changes logits by their own size.
BOUND = 0.05
Made = Callable[[Transformer, KVCache], DecodeLoop]
Change = Callable[[Transformer], object]
Case = tuple[dict[str, Made], Change | None]  # the loops to measure, and what replaces the model's weights before


def plain_eager(model: Transformer, cache: KVCache) -> DecodeLoop:
    return DecodeLoop(model, cache, operations=PLAIN, graph=False)


def compiled(model: Transformer, cache: KVCache) -> DecodeLoop:
    """Return the compiled static loop in a CUDA graph; greedy, because PyTorch's sampling would wait for the CPU."""
    loop = DecodeLoop(model, cache, operations=PLAIN)
    loop.step_logits = CompiledStep(model, cache)
    return loop


def ours(
    model: Transformer,
    cache: KVCache,
    operations: Operations | None = None,
    graph: bool = True,
    how: Sampling = DRAWN,
) -> DecodeLoop:
    return DecodeLoop(model, cache, how, operations, graph)


LOOPS: dict[str, Made] = {
    "plain PyTorch, eager": plain_eager,
    "torch.compile, CUDA graph": compiled,
    "attention kernel, eager": partial(ours, operations=KERNELS, graph=False),
    "attention kernel, CUDA graph": partial(ours, operations=KERNELS),
}


@torch.no_grad()
def measure(
    loops: dict[str, Made],
    batch: int,
    used: int,
    capacity: int,
    rounds: int,
    size: str = "1b",
    change: Change | None = None,
) -> list[dict[str, Any]]:
    """Return a record of each loop at one batch, and one per kind of kernel of the loops in CUDA graphs.

    change: called with the model first, to replace its weights.
    """
    device = torch.device(this_machine().device)
    torch.manual_seed(0)
    with device:
        model = Transformer(dataclasses.replace(SIZES[size], context=capacity), sdpa).to(DTYPE)
    if change:
        change(model)
    cache = KVCache.for_model(model, batch, capacity)
    cache.k.normal_()
    cache.v.normal_()
    current = torch.randint(model.config.vocabulary, (batch,), device=device)
    about = {"study": STUDY.name, "size": size, "batch": batch, "used": used, "capacity": capacity}
    about |= {"weight_bytes": weight_bytes(model), "cache_bytes": cache.nbytes * used // capacity}
    expected, right, found = logits(DecodeStep(model, cache, PLAIN), used, current), dict[str, DecodeLoop](), []
    errors: dict[str, float] = {}
    for name, make in loops.items():
        try:
            loop = make(model, cache)
            at(loop, used, current)
            error = float((logits(loop.step_logits, used, current) - expected).norm() / expected.norm())
            loop.step()  # captures
            wait(device)
        except Exception as raised:  # a loop that cannot run is a result too
            found.append({**about, "kind": "token", "name": name, "error": f"{type(raised).__name__}: {raised}"[:300]})
            continue
        if error < BOUND:
            right[name], errors[name] = loop, error
        else:
            found.append({**about, "kind": "token", "name": name, "error": f"its logits are off by {error:.2%}"})

    def tokens(loop: DecodeLoop) -> float:
        at(loop, used - STEPS // 2, current)
        return 1e3 * clock(lambda: [loop.step() for _ in range(STEPS)], device)[1] / STEPS

    for loop in right.values():
        tokens(loop)
    with collected_between() as collect:
        samples = in_turns({name: partial(tokens, loop) for name, loop in right.items()}, rounds, collect)
    for name, loop in right.items():
        timing = Timing.of(samples[name])
        facts = {"graph": loop.graph, "sampling": str(loop.how), "relative_error": errors[name], "steps": STEPS}
        found.append({**about, "kind": "token", "name": name, **facts, **timing.record("token")})
        if loop.graph:
            found += [{**about, "kind": "kernel", "name": name, **row} for row in kernels(loop, used, current)]
    return found


def at(loop: DecodeLoop, used: int, current: Tensor) -> None:
    """Let the loop go on after `used` positions, whatever the cache holds there."""
    loop.cache.lengths.fill_(used)
    loop.current.copy_(current)
    loop.longest = used


def logits(step: DecodeStep, used: int, current: Tensor) -> Tensor:
    step.cache.lengths.fill_(used)
    return step(current).float()


def kernels(loop: DecodeLoop, used: int, current: Tensor) -> list[dict[str, Any]]:
    """Return the kernels of one step by name: launches and µs, the most expensive first. Dependent kernels overlap, so
    the sum may exceed the step's time."""
    at(loop, used, current)
    events = trace.record(loop.step, warmup=2).events
    rows: dict[str, list[float]] = {}
    for event in events:
        if event["cat"] in trace.GPU_WORK:
            rows.setdefault(short(event["name"]), []).append(event["dur"])
    by_cost = sorted(rows.items(), key=lambda row: -sum(row[1]))
    return [{"kernel": kernel, "launches": len(us), "us": sum(us)} for kernel, us in by_cost]


def short(name: str) -> str:
    """Return a kernel's name without its template and function arguments."""
    return re.sub(r"\(.*|void |at::native::|<.*", "", name)[:80] or name[:80]


def weight_bytes(model: Transformer) -> int:
    """Return the bytes of the weights that a step reads: all but the embedding's, unless it is also the output's."""
    read: list[Any] = [module for module in model.modules() if hasattr(module, "weight")]
    return sum(module.weight.nbytes for module in read if model.output is None or module is not model.embedding)


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return ms per token by loop and batch, and the bytes per second that the step reads."""
    rows = rows[rows["kind"] == "token"]
    gb_s = (rows["weight_bytes"] + rows["cache_bytes"]) / rows["token_ms"] / 1e6 if "token_ms" in rows else None
    shown = [
        c
        for c in ("batch", "used", "weights", "name", "token_ms", "token_p80_ms", "relative_error", "error")
        if c in rows
    ]
    return rows[shown].assign(**{"GB/s": gb_s})


def slowest_kernels(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the five most expensive kinds of kernel of each loop and batch."""
    rows = rows[rows["kind"] == "kernel"]
    if rows.empty:
        return rows
    return rows.groupby(["batch", "name"], sort=False).head(5)[["batch", "name", "kernel", "launches", "us"]]


def run(cases: Mapping[str, Case], arguments: list[str] | None, study: Study, doc: str | None) -> None:
    """Measure the loops of each case, which is a format of the weights, and keep the records in `study`."""
    parser = study.parser(doc, limit=600)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 16, 64], metavar="B")
    parser.add_argument("--used", type=int, default=1000, help="positions in use; default: %(default)s")
    parser.add_argument("--capacity", type=int, default=2048, help="positions of the cache; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="samples per loop; default: %(default)s")
    parser.add_argument("--size", default="1b", choices=list(SIZES), help="of the model; default: %(default)s")
    given = parser.parse_args(arguments)
    if this_machine().device != "cuda":
        parser.error("decoding is measured on a GPU, and there is none here")
    if not STEPS <= given.used <= given.capacity - STEPS:
        parser.error(f"--used is {given.used}; {STEPS} to {given.capacity - STEPS} fit a capacity of {given.capacity}")
    prepare_triton()
    for batch in given.batches:
        for weights, (loops, change) in cases.items():
            release()
            found = measure(loops, batch, given.used, given.capacity, given.rounds, given.size, change)
            about = {"study": study.name, "weights": weights}
            study.keep([{**record, **about} for record in found], given.out, table=table)
            print(slowest_kernels(study_frame(found)).to_string(index=False), flush=True)


def study_frame(found: list[dict[str, Any]]) -> pandas.DataFrame:
    from labs_helpers.measure.records import frame

    return frame(found)


def main(arguments: list[str] | None = None) -> None:
    run({"bf16": (LOOPS, None)}, arguments, STUDY, __doc__)


if __name__ == "__main__":
    program.run(main)
