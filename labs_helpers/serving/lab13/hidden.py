"""Inputs on which the grader tests answers to lab 13, besides those of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.hidden import hidden, kept
from labs_helpers.serving.lab13.drawn import Attention, Paged, Step, pick, rotate
from labs_helpers.transformer.config import TransformerConfig

Function = Callable[..., Any]


def _config(draw: np.random.Generator) -> TransformerConfig:
    kv_heads, group, layers, half, context = (int(draw.integers(1, most)) for most in (5, 5, 40, 65, 8000))
    heads = kv_heads * group
    return TransformerConfig(64, layers, 2 * half * heads, heads, hidden=8, kv_heads=kv_heads, context=context)


@hidden("13/1")
def step_cost(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(8):
        parameters, batch, new, past = draw.integers((1, 1, 1, 0), (10**9, 65, 500, 4000)).tolist()
        yield [float(number) for number in function(_config(draw), parameters, batch, new, past)]


@hidden("13/2")
def attend_cached(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(4):
        kv_heads, group, half, length = (int(draw.integers(1, most)) for most in (4, 4, 5, 20))
        given = Attention(kv_heads * group, kv_heads, 2 * half, length, length + 5, seed=int(draw.integers(10**6)))
        k, v = given.cache()
        yield [function(given.features()[-1], *given.weights(), k, v, length, rotate), k, v]


@hidden("13/3")
def users_that_fit(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(8):
        config, parameters, size = _config(draw), int(draw.integers(1, 10**9)), int(draw.integers(1, 65))
        memory = 2 * parameters + int(draw.integers(10**9, 10**11))
        yield list(map(int, function(config, parameters, memory, int(draw.integers(1, config.context + 1)), size)))


@hidden("13/4")
def block_tables(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(4):
        count, size = int(draw.integers(3, 15)), int(draw.integers(1, 9))
        tables, references, extend, fork, release = function(count, size)
        lengths: dict[str, int] = {}
        for number in range(25):
            name, action = f"r{draw.integers(4)}", int(draw.integers(4))
            if action < 2:
                asked = lengths.get(name, 0) + int(draw.integers(1, 3 * size))
                if fits := extend(name, asked):
                    lengths[name] = asked
                yield bool(fits)
            elif name in lengths and action == 2:
                lengths[f"f{number}"] = lengths[name]
                fork(name, f"f{number}")
            elif name in lengths:
                release(name)
                del lengths[name]
            yield {key: list(tables[key]) for key in sorted(tables)}, list(references)


@hidden("13/5")
def paged_attention(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(4):
        kv_heads, group, D, size = (int(draw.integers(1, most)) for most in (4, 4, 9, 7))
        lengths = tuple(draw.integers(1, 20, int(draw.integers(1, 5))).tolist())
        yield function(*Paged(kv_heads * group, kv_heads, D, size, lengths, int(draw.integers(10**6))).tensors())


@hidden("13/6")
def next_step(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(8):
        waiting = [(f"r{i}", *draw.integers(1, 30, 2).tolist()) for i in range(8)]
        running: list = []
        slots, capacity, static = int(draw.integers(1, 5)), int(draw.integers(30, 90)), bool(draw.integers(2))
        for _ in range(12):
            same = kept(running, waiting)
            running, waiting = function(running, waiting, slots, capacity, static)
            running, waiting = ([tuple(request) for request in part] for part in (running, waiting))
            yield [running, waiting]
        yield same()


@hidden("13/7")
def chunked_passes(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(8):
        decoding, prompts = int(draw.integers(0, 9)), draw.integers(1, 60, int(draw.integers(1, 6))).tolist()
        passes = function(decoding, prompts, decoding + len(prompts) + int(draw.integers(1, 40)))
        yield [[tuple(map(int, chunk)) for chunk in chunks] for chunks in passes]


@hidden("13/8")
def stream_text(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for letters in ("ab", "ab", "aé", "€a😀"):
        for _ in range(4):
            text = "".join(draw.choice(list(letters), 30))
            stop = "".join(draw.choice(list(letters), int(draw.integers(1, 7))))
            data = text.encode()
            yield list(function(list(data[: len(data) - int(draw.integers(0, 4))]), stop))


@hidden("13/9")
def verify(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(30):
        V, K = int(draw.integers(2, 9)), int(draw.integers(0, 6))
        proposed, uniform = draw.integers(0, V, K).tolist(), draw.random(K).tolist()
        p, q = Step(V, tuple(proposed), tuple(uniform), int(draw.integers(10**6))).distributions()
        seen: list[torch.Tensor] = []

        def drawn(weights: torch.Tensor, seen: list = seen, u: float = float(draw.random())) -> int:
            seen.append(weights / weights.sum())
            return pick(weights, u)

        yield [list(map(int, function(p, q, proposed, uniform, drawn))), seen]


@hidden("13/10")
def best_speculation(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for alpha, cost in draw.random((10, 2)).tolist():
        k, tokens, speed_up = function(alpha, cost / 3, int(draw.integers(1, 12)))
        yield [int(k), float(tokens), float(speed_up)]


@hidden("13/11")
def conversation_tree(function: Function, draw: np.random.Generator) -> Iterator[Any]:
    for _ in range(6):
        events, names, size = [("start", "c0")], ["c0"], int(draw.integers(1, 6))
        for number in range(1, 25):
            name, action = names[int(draw.integers(len(names)))], int(draw.integers(6))
            if action == 0 and len(names) > 1:
                names.remove(name)
                events.append(("end", name))
            elif action < 3:
                names.append(f"c{number}")
                events.append(("fork", names[-1], name))
            else:
                events.append(("append", name, int(draw.integers(0, 2 * size + 1))))
        tables, references, copies, peak = function(events, size)
        held = {key: list(tables[key]) for key in sorted(tables)}
        yield held, {int(key): references[key] for key in sorted(references)}
        yield [list(map(int, pair)) for pair in copies], int(peak)
