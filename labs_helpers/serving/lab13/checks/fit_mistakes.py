"""Count users on a chip with one mistake each, as answers to exercise 3 of lab 13 do."""

from __future__ import annotations

from collections.abc import Iterator


def _position(config, *, heads=None):
    return 4 * config.layers * (heads or config.key_value_heads) * config.head_dim


def right(config, parameters, memory, length, size) -> tuple[int, int, int]:
    one, left = _position(config), memory - 2 * parameters
    return one, left // (one * config.context), left // (one * size) // -(-length // size)


def per_position(config, parameters, memory, length, size) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the bytes per position that it gives."""
    each = _position(config)
    yield "keys and values are both cached, and each of their numbers takes 2 bytes", each / 2
    yield "a bfloat16 number takes 2 bytes, not 4", 2 * each
    yield "every layer has its own keys and values", each / config.layers
    yield (
        "the query heads of a group share their keys and values: key_value_heads, not heads",
        _position(config, heads=config.heads),
    )
    yield "every key and value head has its own numbers: · key_value_heads", each / config.key_value_heads
    yield "a key of one head has head_dim numbers", each / config.head_dim
    yield "keys and values are both cached, and a number takes 2 bytes", each / 4


def reserved(config, parameters, memory, length, size) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the number of users with reserved memory that it gives."""
    each, left = _position(config) * config.context, memory - 2 * parameters
    yield "the weights take memory, too", memory // each
    yield "a weight takes 2 bytes", (memory - parameters) // each
    yield "a weight takes 2 bytes, not 4", (memory - 4 * parameters) // each
    yield "part of a user cannot be served: round down", left / each
    yield "part of a user cannot be served: round down", -(-left // each)
    yield "reserving means `context` positions per user, whatever its length", left // (_position(config) * length)
    yield "this is the number of positions that fit; a user reserves `context` of them", left // _position(config)


def paged(config, parameters, memory, length, size) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the number of users with blocks that it gives."""
    one, left = _position(config), memory - 2 * parameters
    blocks = left // (one * size)
    yield "a block belongs to one user: round the blocks per user up", blocks // max(1, length // size)
    yield "a block belongs to one user: round the blocks per user up", left // (one * length)
    yield "a block belongs to one user: round the blocks per user up", blocks * size // length
    yield "a whole number of blocks needs no further one: round up, do not add 1", blocks // (length // size + 1)
    yield "the weights take memory, too", memory // (one * size) // -(-length // size)
    yield "part of a user cannot be served: round down", blocks / -(-length // size)
    yield "part of a user cannot be served: round down", -(-blocks // -(-length // size))
    yield "a user holds blocks for `length` positions, not for `context`", blocks // -(-config.context // size)
    yield "this is the number of blocks; divide it by the blocks of one user", blocks
