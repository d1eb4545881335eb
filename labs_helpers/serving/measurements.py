"""The measurements of `study`: each returns records."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import torch
from torch import Tensor

from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.race import clock, collected_between, in_turns, wait
from labs_helpers.measure.study import Record
from labs_helpers.measure.timing import Timing
from labs_helpers.quantization.model import quantize
from labs_helpers.serving.agreement import agreement
from labs_helpers.serving.blocks import Blocks
from labs_helpers.serving.counting import Lengths, count
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.speculative import SpeculativeEngine
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.decoding import captured
from labs_helpers.transformer.decoding_study import weight_bytes
from labs_helpers.transformer.model import Transformer, rotary_angles

HOW: dict[str, Any] = {"temperature": 0.8, "top_k": 50}
BLOCK_SIZE = 16
BUDGET = 8192  # tokens per pass, while the prompts of `steps` are computed


def model_of(
    size: str, context: int, weights: str = "bf16", dtype: torch.dtype = torch.bfloat16, vocabulary: int = 0
) -> Transformer:
    """Return a model with random weights on this machine's device. weights: 'bf16', or a key of SCHEMES. vocabulary: 0
    for the size's own."""
    torch.manual_seed(0)
    config = dataclasses.replace(SIZES[size], context=context, vocabulary=vocabulary or SIZES[size].vocabulary)
    with torch.device(this_machine().device):
        model = Transformer(config, sdpa).to(dtype).eval()
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
    cache_bytes = batch * used * position_bytes(engine)
    about = {"batch": batch, "used": used, "weight_bytes": weight_bytes(model), "cache_bytes": cache_bytes}
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

    tables: list[Tensor] = []  # a graph does not keep the tensors that it reads

    def layers(size: int | None) -> Any:
        table, extra = None, list[Tensor]()
        shape = (batch, Hkv, capacity, D)
        if size:
            blocks = batch * capacity // size
            table = torch.randperm(blocks, device=device).int().view(batch, capacity // size)
            shape, extra = (blocks, Hkv, size, D), [table]
            tables.append(table)
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
    """Return the seconds that a workload takes with in-flight and with static batching, and two predictions of their
    ratio: that of the counted passes, and that of the bytes of weights and cache that these read."""
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
    weights, position = weight_bytes(model), position_bytes(engine)
    read = [record["passes"] * weights + record["positions"] * position for record in found]
    in_flight, static = found
    for record in found:
        record["predicted_ratio"] = static["passes"] / in_flight["passes"]
        record["predicted_by_bytes"] = read[1] / read[0]
        record["ratio"] = static["all_ms"] / in_flight["all_ms"]
    return found


def agreements(model: Transformer, work: list[Lengths], slots: int, blocks: int) -> list[Record]:
    """Return how many greedy answers of a busy engine are those of each request alone; see `Agreement`."""
    generator = torch.Generator().manual_seed(0)
    prompts = [torch.randint(model.config.vocabulary, (prompt,), generator=generator).tolist() for prompt, _ in work]
    busy, quiet = (Engine(model, blocks=blocks, slots=count, budget=512, sharing=False) for count in (slots, 1))
    answers = []
    for engine in (busy, quiet):
        tokens: dict[int, list[int]] = {}
        for prompt, (_, length) in zip(prompts, work, strict=True):
            number = engine.add(prompt, SamplingParameters(length, temperature=0))
            tokens[number] = []
        while engine.has_work():
            for output in engine.step():
                tokens[output.request] += output.tokens
        answers.append(list(tokens.values()))
    result = agreement(model, prompts, *answers)
    about = {"kind": "agreement", "requests": len(work), "slots": slots}
    return [about | {"equal": result.equal, "near_ties": result.near_ties, "wrong": len(result.wrong)}]


def speculation(
    model: Transformer, draft: Transformer, batch: int, used: int, proposals: int, rounds: int, each: int = 10
) -> list[Record]:
    """Return the time of a step that proposes and verifies, and the share of proposals that was accepted."""
    output = rounds * each * (proposals + 1) + 1 + proposals
    prompt = max(1, used - output // 2)
    blocks = batch * (-(-(prompt + output) // BLOCK_SIZE) + 1)
    engine = SpeculativeEngine(
        model, draft, proposals, blocks=blocks, block_size=BLOCK_SIZE, slots=batch, budget=BUDGET, sharing=False
    )
    for seed in range(batch):
        tokens = torch.randint(model.config.vocabulary, (prompt,), generator=torch.Generator().manual_seed(seed))
        engine.add(tokens.tolist(), SamplingParameters(output, temperature=0.8, seed=seed))
    while not all(request.decoding for request in engine.scheduler.running.values()) or engine.scheduler.waiting:
        engine.step()
    engine.step()  # captures
    device = engine.passes.device
    with collected_between():
        samples = [1e3 * clock(lambda: [engine.step() for _ in range(each)], device)[1] / each for _ in range(rounds)]
    about = {"kind": "speculation", "batch": batch, "used": used, "name": f"{proposals} proposals"}
    return [about | {"accepted": engine.accepted / engine.proposed} | Timing.of(samples).record("step")]


def position_bytes(engine: Engine) -> int:
    """Return the bytes of one position of the cache."""
    return engine.cache.nbytes // (engine.blocks.count + 1) // engine.blocks.size


def drain(engine: Engine) -> None:
    """Make steps until the engine has no work."""
    while engine.has_work():
        engine.step()
