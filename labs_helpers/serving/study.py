"""Measure the serving engine on a GPU: whole steps, attention on a paged and a static cache, in-flight and static
batching.

    python -m labs_helpers.serving.study                                # about 3 minutes on an H200
    python -m labs_helpers.serving.study --parts step --weights bf16 int8 int4-128 --batches 1

Lab 01's 1B model with random weights. A step's time is that of `Engine.step`, with scheduling and sampling.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from labs_helpers.launch import program
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.race import clock, collected_between, in_turns, wait
from labs_helpers.measure.study import Record, Study
from labs_helpers.measure.timing import Timing
from labs_helpers.quantization.model import SCHEMES, quantize
from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.counting import Lengths, count, workload
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.decoding import captured
from labs_helpers.transformer.decoding_study import weight_bytes
from labs_helpers.transformer.model import Transformer, rotary_angles

if TYPE_CHECKING:
    import pandas

STUDY = Study("serving", "python -m labs_helpers.serving.study")
load = STUDY.load
HOW: dict[str, Any] = {"temperature": 0.8, "top_k": 50}
BLOCK_SIZE = 16
BUDGET = 8192  # tokens per pass, while the prompts of `steps` are computed


def model_of(size: str, context: int, weights: str = "bf16", dtype: torch.dtype = torch.bfloat16) -> Transformer:
    """Return a model with random weights on this machine's device. weights: 'bf16', or a key of SCHEMES."""
    torch.manual_seed(0)
    with torch.device(this_machine().device):
        model = Transformer(dataclasses.replace(SIZES[size], context=context), sdpa).to(dtype).eval()
    if weights != "bf16":
        quantize(model, weights)
    return model


def steps(model: Transformer, batch: int, used: int, rounds: int, each: int = 40) -> list[Record]:
    """Return the time of the engine's step when all of a batch decodes. The positions in use are `used` on average over
    `rounds` samples of `each` steps."""
    config, half = model.config, rounds * each // 2
    lead = 4 + 2 * (batch * used // BUDGET)  # the first prompts decode while the last are computed
    prompt, output = used - half - lead, 2 * half + 3 * lead
    needed = -(-(prompt + output) // BLOCK_SIZE)
    engine = Engine(
        model, blocks=batch * (needed + 1), block_size=BLOCK_SIZE, slots=batch, budget=BUDGET, sharing=False
    )
    for seed in range(batch):
        tokens = torch.randint(config.vocabulary, (prompt,), generator=torch.Generator().manual_seed(seed)).tolist()
        engine.add(tokens, SamplingParameters(output, seed=seed, **HOW))
    running = engine.scheduler.running
    while len(running) < batch or any(request.computed < used - half for request in running.values()):
        engine.step()
    device = engine.passes.device
    wait(device)
    with collected_between():
        samples = [1e3 * clock(lambda: [engine.step() for _ in range(each)], device)[1] / each for _ in range(rounds)]
    position = engine.cache.nbytes // (engine.blocks.count + 1) // BLOCK_SIZE
    about = {"batch": batch, "used": used, "weight_bytes": weight_bytes(model), "cache_bytes": batch * used * position}
    return [about | {"kind": "step", "sampling": str(HOW)} | Timing.of(samples).record("step")]


def attentions(
    model: Transformer, batch: int, used: int, capacity: int, rounds: int, sizes: tuple[int, ...] = (16, 32, 64)
) -> list[Record]:
    """Return the time per layer of the decoding attention on a static cache and on ones with blocks of these sizes, in
    random order. Each layer has its own cache, so that nothing stays in the chip's."""
    from labs_helpers.attention.kernels.cached import CachedAttention

    config, weight = model.config, model.norm.weight
    H, Hkv, D, device = config.heads, config.key_value_heads, config.head_dim, weight.device
    cos, sin = rotary_angles(capacity, D, config.rope_theta, device)
    qkv = torch.randn(batch, (H + 2 * Hkv) * D, device=device).to(weight.dtype)
    lengths = torch.full((batch,), used, dtype=torch.int32, device=device)
    memory = torch.randn(2, config.layers, batch * capacity * Hkv * D, device=device).to(weight.dtype)

    def layers(size: int | None) -> Any:
        table, extra = None, list[Tensor]()
        shape = (batch, Hkv, capacity, D)
        if size:
            blocks = batch * capacity // size
            table = torch.randperm(blocks, device=device).int().view(batch, capacity // size)
            shape, extra = (blocks, Hkv, size, D), [table]
        k, v = (memory[which].view(config.layers, *shape) for which in range(2))
        attend = CachedAttention(k[0], H, dependent=False, table=table)

        def run() -> None:
            for layer in range(config.layers):
                attend(qkv, cos, sin, lengths, k[layer], v[layer], *extra)

        return captured(run, lambda: None).replay if device.type == "cuda" else run

    names: dict[str, int | None] = {"static": None} | {f"blocks of {size}": size for size in sizes}
    runs = {name: layers(size) for name, size in names.items()}
    each = 20 if device.type == "cuda" else 1

    def sample(run: Any) -> float:
        return 1e3 * clock(lambda: [run() for _ in range(each)], device)[1] / each / config.layers

    with collected_between() as collect:
        samples = in_turns({name: partial(sample, run) for name, run in runs.items()}, rounds, collect)
    about = {"kind": "attention", "batch": batch, "used": used, "capacity": capacity}
    timings = {name: Timing.of(samples[name]) for name in names}
    ratios = {name: timing.median_ms / timings["static"].median_ms for name, timing in timings.items()}
    return [about | {"name": name, "ratio": ratios[name]} | timings[name].record("layer") for name in names]


def batching(
    model: Transformer, work: list[Lengths], slots: int, budget: int, blocks: int, rounds: int
) -> list[Record]:
    """Return the seconds that a workload takes with in-flight and with static batching, and the counted passes."""
    device, vocabulary = model.norm.weight.device, model.config.vocabulary
    generator = torch.Generator().manual_seed(0)
    prompts = [torch.randint(vocabulary, (prompt,), generator=generator).tolist() for prompt, _ in work]

    def seconds(engine: Engine) -> float:
        for seed, (prompt, (_, output)) in enumerate(zip(prompts, work, strict=True)):
            engine.add(prompt, SamplingParameters(output, seed=seed, **HOW))
        return clock(lambda: drain(engine), device)[1]

    found = []
    engines = {
        name: Engine(
            model, blocks=blocks, block_size=BLOCK_SIZE, slots=slots, budget=budget, static=static, sharing=False,
            most_waiting=len(work),
        )
        for name, static in (("in-flight", False), ("static", True))
    }  # fmt: skip
    for engine in engines.values():
        engine.prepare()
        engine.add(prompts[0], SamplingParameters(2))
        drain(engine)
    with collected_between() as collect:
        samples = in_turns({name: partial(seconds, engine) for name, engine in engines.items()}, rounds, collect)
    for name, engine in engines.items():
        counts = count(work, Blocks(blocks, BLOCK_SIZE, sharing=False), slots, budget, engine.scheduler.static)
        timing = Timing.of([1e3 * sample for sample in samples[name]])
        tokens = {"requests": len(work), "slots": slots, "budget": budget, "output_tokens": sum(o for _, o in work)}
        found.append({"kind": "batching", "name": name, **tokens, **dataclasses.asdict(counts), **timing.record("all")})
    in_flight, static = found
    for record in found:
        record["predicted_ratio"] = static["passes"] / in_flight["passes"]
        record["ratio"] = static["all_ms"] / in_flight["all_ms"]
    return found


def drain(engine: Engine) -> None:
    """Make steps until the engine has no work."""
    while engine.has_work():
        engine.step()


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the times of all kinds: ms per step, layer or workload, and what they compare with."""
    times = rows[[name for name in ("step_ms", "layer_ms", "all_ms") if name in rows]].bfill(axis=1).iloc[:, 0]
    columns = ["kind", "weights", "name", "batch", "used", "passes", "waste", "ratio", "predicted_ratio"]
    shown = rows[[name for name in columns if name in rows]].assign(ms=times)
    if "weight_bytes" in rows:
        shown["GB/s"] = (rows["weight_bytes"] + rows["cache_bytes"]) / rows["step_ms"] / 1e6
    return shown


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__, limit=900)
    parts = ["step", "attention", "batching"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="default: all")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 64], metavar="B", help="default: 1 64")
    parser.add_argument("--weights", nargs="+", default=["bf16"], choices=["bf16", *SCHEMES], help="default: bf16")
    parser.add_argument("--used", type=int, default=1000, help="positions in use; default: %(default)s")
    parser.add_argument("--capacity", type=int, default=2048, help="positions of a sequence; default: %(default)s")
    parser.add_argument("--requests", type=int, default=256, help="of the workload; default: %(default)s")
    parser.add_argument("--slots", type=int, default=32, help="for the workload; default: %(default)s")
    parser.add_argument("--budget", type=int, default=1024, help="tokens per pass; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="samples of a time; default: %(default)s")
    parser.add_argument("--size", default="1b", choices=list(SIZES), help="of the model; default: %(default)s")
    given = parser.parse_args(arguments)
    if this_machine().device != "cuda":
        parser.error("serving is measured on a GPU, and there is none here")
    prepare_triton()
    found: list[Record] = []
    for weights in given.weights:
        release()
        model = model_of(given.size, given.capacity, weights)
        if "step" in given.parts:
            for batch in given.batches:
                found += named(steps(model, batch, given.used, given.rounds), given.size, weights)
                release()
        if "attention" in given.parts and weights == "bf16":
            for batch in given.batches:
                found += named(attentions(model, batch, given.used, given.capacity, given.rounds), given.size, weights)
                release()
        if "batching" in given.parts:
            blocks = given.slots * given.capacity // BLOCK_SIZE
            work = workload(given.requests)
            measured = batching(model, work, given.slots, given.budget, blocks, min(given.rounds, 2))
            found += named(measured, given.size, weights)
    STUDY.keep(found, given.out, table=table)


def named(records: list[Record], size: str, weights: str) -> list[Record]:
    return [{"study": STUDY.name, "size": size, "weights": weights} | record for record in records]


if __name__ == "__main__":
    program.run(main)
