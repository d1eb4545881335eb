"""What an engine says about itself: its limits, that its queue is full, and numbers for monitoring."""

from __future__ import annotations

from dataclasses import dataclass


class QueueFull(Exception):
    """As many requests as allowed are waiting; try again later."""


@dataclass(frozen=True)
class Limits:
    """most_tokens: of a prompt and its answer together. most_waiting: requests that have no slot."""

    most_tokens: int
    most_waiting: int


TOTALS = frozenset({"steps", "preemptions", "prompt_tokens", "cached_tokens", "generated_tokens"})  # since the start


@dataclass(frozen=True)
class Statistics:
    """Requests and blocks now, and TOTALS.

    blocks_cached: the free blocks whose contents may be shared. blocks_filled: the positions in use of the blocks_used,
    in blocks. prompt_tokens count a request when it first runs, and cached_tokens are those of them that were shared.
    """

    running: int
    waiting: int
    blocks_used: int
    blocks_free: int
    blocks_cached: int
    blocks_filled: float
    steps: int
    preemptions: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
