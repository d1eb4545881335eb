"""Inputs on which the grader tests answers to lab 03, besides those of the checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from labs_helpers.course.own_memory import random_state
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.lab03.hidden.benches import Bench, Interrupted, Pruner, Watch
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.gemm.tuning.space import grid
from labs_helpers.grading.hidden import hidden
from labs_helpers.measure.datasheet import DATASHEET, KIB, Datasheet

# Each of these tiles and warps fits an A100 and an H100 with four stages, fills much of the memory and does not spill.
TILES = (
    "64×96×4 64×128×4 64×160×4 64×192×4 96×96×4 96×128×4 96×160×4 96×192×4 96×256×8 128×128×4 128×128×8 128×160×4 "
    "128×160×8 128×192×4 128×192×8 128×224×8 128×256×8 160×160×4 160×160×8 160×192×4 160×192×8 160×224×8 160×256×8 "
    "192×192×8 192×224×8 192×256×8 224×224×8 224×256×8 64×224×4 64×256×4 96×224×4 64×256×8"
)
TWICE = "128×128 128×160 128×192 160×160 160×192"
BAD = (Config(256, 256, 32, 8, 4, 3), Config(256, 256, 128, 8, 16, 5), Config(256, 128, 128, 8, 8, 6))


def sizes(draw: np.random.Generator) -> tuple[int, int, int]:
    """Draw M, N and K."""
    M, N, K = (16 * int(2 ** draw.uniform(4, 9.5)) for _ in range(3))
    return M, N, K


@hidden("03/1")
def resources(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for capability in (75, 80, 86, 89, 90, 100):
        for _ in range(8):
            M, N, K = (int(2 ** draw.integers(5, most)) for most in (9, 9, 8))
            config = Config(M, N, K, 8, int(2 ** draw.integers(1, 4)), int(draw.integers(2, 7)))
            memory = int(draw.integers(48, 228)) * KIB
            chip = replace(DATASHEET["H100"], architecture=f"sm_{capability}", shared_bytes_per_block=memory)
            yield function(config, chip)
    yield function(Config(128, 64, 64, 8, 4, 4), replace(chip, architecture="sm_90", shared_bytes_per_block=96 * KIB))


@hidden("03/2")
def waves(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for config in draw.permutation(len(grid()))[:40]:
        yield function(*map(int, draw.integers(1, 9000, 2)), grid()[config], int(draw.integers(1, 200)))
    for tiles in map(int, draw.integers(1, 60, 6)):
        yield function(64 * 7, 128 * tiles, Config(64, 128, 32), 7)  # the last wave is full


@hidden("03/3")
def prune(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for name in ("A100", "H100", "H200", "H200"):
        chip = replace(DATASHEET[name], multiprocessors=int(draw.integers(20, 200)))
        configs = [*BAD, *(_good(tile, draw) for tile in draw.choice(TILES.split(), 22, replace=False))]
        configs = [configs[place] for place in draw.permutation(len(configs))]
        given = list(configs)
        kept = list(function(given, *sizes(draw), chip))
        # The number kept is free, up to 40%, but the order is fixed.
        yield [str(config) for config in kept[:3]], len(kept) <= 10, given == configs
        first = next(iter(function(grid(), *sizes(draw), chip)))
        yield first.BLOCK_M * first.BLOCK_N, first.BLOCK_M + first.BLOCK_N, first.num_warps
        equals = [_good(f"{tile}×{warps}", draw) for tile in TWICE.split() for warps in (4, 8)]
        equals = [equals[place] for place in draw.permutation(len(equals))]
        yield [one.num_warps for one in list(function(equals, *sizes(draw), chip))[:3]]


def _good(tile: str, draw: np.random.Generator) -> Config:
    *sides, warps = map(int, tile.split("×"))
    M, N = map(int, draw.permutation(sides))
    return Config(M, N, 128 if M + N < 190 else 64 if M + N < 400 else 32, 8, warps, 4)


@hidden("03/4")
def grid_search(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(3):
        configs = [grid()[place] for place in draw.permutation(144)[:40]]
        bench = Bench(draw, configs, wrong=0.5)
        given = bench.expected.clone(), bench.bound.clone()
        best, times = function(iter(configs), bench.run, *given, bench.measure)
        yield str(best), {str(config): float(ms) for config, ms in times.items()}, list(map(str, bench.timed)), given
        yield list(times) == configs
    for where in ("run", "measure"):
        calls = Interrupted(bench, where, int(draw.integers(5, 15)))
        best, times = function(iter(configs), calls.run, bench.expected, bench.bound, calls.measure)
        kept = {str(config): float(ms) for config, ms in times.items() if math.isfinite(ms)}
        yield str(best), kept, calls.number  # the interrupted configuration may or may not have an entry
    nothing = Bench(draw, configs, wrong=1.0)
    yield str(function(iter(configs), nothing.run, nothing.expected, nothing.bound, nothing.measure)[0])


@hidden("03/5")
def random_search(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    configs, chip, shape = grid(), DATASHEET[str(draw.choice(("A100", "H100", "L4")))], sizes(draw)
    ms = dict(zip(configs, draw.uniform(0.1, 9, len(configs)).tolist(), strict=True))
    kept = [configs[place] for place in draw.permutation(len(configs))[:24]]
    state, drawn, seed = random_state(function), list[list[str]](), int(draw.integers(1000))
    with Pruner(function, {shape: kept}) as pruner:
        for budget, number in (*((9, seed + max(0, i)) for i in range(-1, 6)), (len(kept), seed)):
            watch = Watch(ms)
            best, curve = function(configs, *shape, chip, watch.measure, budget, number)
            fastest = list(accumulate((ms[config] for config in watch.timed), min))
            yield len(watch.timed), len(set(watch.timed)), set(watch.timed) <= set(kept), list(curve) == fastest
            yield ms[best] == fastest[-1]
            drawn.append([str(config) for config in watch.timed])
        yield drawn[0] == drawn[1], len(set(map(frozenset, drawn[1:-1]))) > 1, random_state(function) == state
        yield sorted(drawn[-1]), str(best), float(curve[-1])  # the budget covers all of them
        best, curve = function(configs, *shape, chip, lambda config: math.inf, 6, 0)
        yield best, [float(one) for one in curve]
    yield pruner.chips == [chip.torch_name] * len(pruner.chips), pruner.fewest


@hidden("03/6")
def cache_key(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    text = dict(kernel="fused", source="def f(x):\n    return x\n", dtype="float16", gpu="NVIDIA H200", triton="3.6")
    for _ in range(6):
        strides = tuple(draw.choice((1, 48, 50, 128), 6).tolist())
        shape = dict(zip("MNK", sizes(draw), strict=True))
        base: dict[str, Any] = {**text, **shape, "strides": strides}
        key = function(**base)
        yield isinstance(key, str), "\n" in key, function(**base) == key
        for name, value in text.items():
            at = int(draw.integers(len(value)))
            yield function(**base | {name: value[:at] + "_" + value[at + 1 :]}) == key
        yield len({function(**base | {"source": f"{text['source']}# {number}\n"}) for number in range(64)})
        for name, size in shape.items():
            for other in (size // 2, size + 16, size + 1, *map(int, draw.integers(1, size, 2))):
                yield function(**base | {name: other}) == key
            power = int(2 ** draw.integers(5, 12))
            yield [function(**base | {name: other}) == function(**base | {name: power}) for other in _around(power)]
        for place in range(6):
            for stride in (1, 2, 64, 4096, 72):
                yield function(**base | {"strides": (*strides[:place], stride, *strides[place + 1 :])}) == key
        yield function(**base | {"M": shape["N"], "N": shape["M"]}) == key


def _around(power: int) -> tuple[int, ...]:
    return power // 2, power // 2 + 16, power - 16, power - 1, power + 16, 2 * power


@hidden("03/7")
def tune_silu(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    chip: Datasheet = DATASHEET[str(draw.choice(("A100", "H100")))]
    shapes, budget, configs = [sizes(draw) for _ in range(4)], 5, grid()
    kept = {shape: [configs[place] for place in draw.permutation(len(configs))[:16]] for shape in shapes}
    # The first ones are promising and the rest are slower, so a search beyond the budget finds nothing better.
    benches = {shape: Bench(draw, kept[shape], wrong=0.4, promising=budget) for shape in shapes}
    benches[shapes[3]] = Bench(draw, kept[shapes[3]], wrong=1.0)
    with TemporaryDirectory() as folder, Pruner(function, kept) as pruner:
        cache = TuningCache(Path(folder, "tuned.json"))
        cache.put(str(shapes[0]), configs[7], 1.5)
        for _ in range(2):
            found = function(
                list(shapes), lambda *shape: benches[shape], chip, cache, lambda *shape: str(shape), budget
            )
            yield {shape: str(config) for shape, config in found.items()}, cache.entries()
            yield len(benches[shapes[0]].ran), [len(bench.timed) <= budget for bench in benches.values()]
            yield [bench.timed_wrong() for bench in benches.values()]
            for shape in shapes[:3]:  # now in the cache, so no bench should be used
                benches[shape] = Bench(draw, kept[shape], wrong=1.0)
        yield [len(benches[shape].ran) for shape in shapes[:3]]
    yield pruner.chips == [chip.torch_name] * len(pruner.chips)
