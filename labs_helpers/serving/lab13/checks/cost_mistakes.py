"""Count a forward pass with one mistake each, as answers to exercise 1 of lab 13 do."""

from __future__ import annotations

from collections.abc import Iterator


def attention_flops(config, batch, new, past, *, per_pair=4, heads=None, layers=None, pairs=None, sequences=None):
    """Return attention's FLOPs; other settings than the defaults make mistakes."""
    layers, heads = layers or config.layers, heads or config.heads
    pairs = new * past + new * (new + 1) / 2 if pairs is None else pairs
    return per_pair * layers * heads * config.head_dim * (sequences or batch) * pairs


def cache_bytes(config, batch, new, past, *, parts=2, wide=2, heads=None, layers=None, positions=None):
    """Return the bytes of keys and values; other settings than the defaults make mistakes."""
    positions = past + new if positions is None else positions
    return (
        parts
        * wide
        * (layers or config.layers)
        * (heads or config.key_value_heads)
        * config.head_dim
        * (batch * positions)
    )


def right(config, parameters, batch, new, past) -> tuple[int, int]:
    given = config, batch, new, past
    return int(2 * parameters * batch * new + attention_flops(*given)), 2 * parameters + cache_bytes(*given)


def flops(config, parameters, batch, new, past) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the FLOPs that it gives."""
    given = config, batch, new, past
    weights, attention = 2 * parameters * batch * new, attention_flops(*given)
    own = "a position attends to itself, too: count its own key"
    yield "a weight takes a multiplication and an addition, two FLOPs", weights / 2 + attention
    yield "the weights multiply every new position, not one per sequence", weights / new + attention
    yield "the weights multiply the positions of every sequence: · batch", weights / batch + attention
    yield (
        "only the new positions pass through the weights; the past ones did so in earlier passes",
        weights / new * (new + past) + attention,
    )
    yield "attention's FLOPs are missing", weights
    yield "the weights' FLOPs are missing", attention
    yield own, weights + attention_flops(*given, pairs=new * past + new * (new - 1) / 2)
    yield own, weights + attention_flops(*given, pairs=new * past)
    yield (
        "a new position does not attend to later ones: new · (new + 1) / 2 pairs among the new positions",
        weights + attention_flops(*given, pairs=new * (past + new)),
    )
    yield "past positions are not counted among the pairs", weights + attention_flops(*given, pairs=new * (new + 1) / 2)
    yield (
        "each new position attends to the past ones: new · past pairs",
        weights + attention_flops(*given, pairs=past + new * (new + 1) / 2),
    )
    yield (
        "past positions do not attend again: their pairs belong to earlier passes",
        weights + attention_flops(*given, pairs=(past + new) * (past + new + 1) / 2),
    )
    yield "scores and values take 2 · head_dim each, so 4 · head_dim per pair", weights + attention / 2
    yield "the products with the values count as well, and two FLOPs per multiplication", weights + attention / 4
    yield (
        "every query head computes its scores: heads, not key_value_heads",
        weights + attention_flops(*given, heads=config.key_value_heads),
    )
    yield "attention is computed in every layer", weights + attention_flops(*given, layers=1)
    yield "attention is computed for every sequence", weights + attention_flops(*given, sequences=1)


def bytes_(config, parameters, batch, new, past) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the bytes that it gives."""
    given, weights = (config, batch, new, past), 2 * parameters
    cache = cache_bytes(*given)
    yield "the weights are read once for all sequences, not once for each", batch * weights + cache
    yield "the weights are read once for all new positions, not once for each", new * weights + cache
    yield "the weights are read once for all rows of the pass", batch * new * weights + cache
    yield "a bfloat16 number takes 2 bytes", (weights + cache) / 2
    yield "a bfloat16 number takes 2 bytes, not 4", 2 * (weights + cache)
    yield "a weight takes 2 bytes", parameters + cache
    yield "keys and values are both cached, and each of their numbers takes 2 bytes", weights + cache / 2
    yield "keys and values are two sets of numbers, with 2 bytes per number", weights + cache / 4
    yield (
        "the query heads of a group share their keys and values: key_value_heads, not heads",
        weights + cache_bytes(*given, heads=config.heads),
    )
    yield "every layer has its own keys and values", weights + cache_bytes(*given, layers=1)
    yield "every sequence has its own keys and values", weights + cache / batch
    yield "the keys and values of the new positions are written", weights + cache_bytes(*given, positions=past)
    yield "the keys and values of past positions are read", weights + cache_bytes(*given, positions=new)
    yield "the cache's bytes are missing", weights
    yield "the weights' bytes are missing", cache
    yield (
        "past positions are read once per pass, not once per new position",
        weights + cache_bytes(*given, positions=new * past + new),
    )
