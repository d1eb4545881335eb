"""A request for text: how to sample it, its state in the engine, and what one step reports about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from labs_helpers.serving.blocks import Table
from labs_helpers.serving.text import TextStream


@dataclass(frozen=True)
class SamplingParameters:
    """How many tokens to generate, how to choose each, and where the text ends.

    temperature: 0 takes the most probable token. top_k: draw from this many of the most probable tokens, and those that
    equal the last of them; None: from all. top_p: then from the fewest most probable tokens that hold this share of the
    probability, and those that equal the last of them (Holtzman et al., The curious case of neural text degeneration,
    2020). seed: None lets the engine draw one; a token's number depends on the seed and the token's index alone. stop:
    the text ends before the first of these. ValueError names the field that does not fit.
    """

    max_tokens: int = 16
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _integer(self.max_tokens) or self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens!r}; it has to be an integer of 1 or more")
        if not _number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature!r}; it has to be 0 or more, and finite")
        if self.top_k is not None and (not _integer(self.top_k) or self.top_k < 1):
            raise ValueError(f"top_k is {self.top_k!r}; it has to be 1 or more; without it, all tokens count")
        if not _number(self.top_p) or not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p!r}; it has to be above 0, and at most 1")
        if self.seed is not None and (not _integer(self.seed) or not -(2**63) <= self.seed < 2**63):
            raise ValueError(f"seed is {self.seed!r}; it has to be an integer that 64 bits hold, or None")
        if not isinstance(self.stop, tuple) or not all(isinstance(text, str) and text for text in self.stop):
            raise ValueError(f"stop is {self.stop!r}; it has to be a tuple of texts that are not empty")


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class FinishReason(StrEnum):
    """Why a request ended: at a stop string, after max_tokens, or because somebody cancelled it."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Output:
    """What one step of the engine reports about one request.

    request: the number that `Engine.add` returned. tokens: the new ones; speculation finds several per step. text: new
    text, whole characters only, and none that may become part of a stop string. The counts are totals, for `usage`;
    cached_tokens are those of the prompt whose keys and values the cache already held.
    """

    request: int
    tokens: tuple[int, ...]
    text: str
    finished: FinishReason | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(eq=False)
class Request:
    """A request's state.

    tokens: the prompt and the reported new tokens. computed: the positions whose keys and values are in the cache once
    all launched passes are done. sampled: the new tokens of all launched passes, reported or not. decoding: the latest
    pass sampled a token, which the next pass continues. seed: the one of `how`, or a drawn one. numbers: a uniform
    number per new token. row: where the latest pass stores the token that it samples.
    """

    id: int
    prompt_tokens: int
    how: SamplingParameters
    tokens: list[int]
    text: TextStream | None = None
    seed: int = 0
    numbers: Sequence[float] = ()
    table: Table = field(default_factory=Table)
    computed: int = 0
    sampled: int = 0
    decoding: bool = False
    cached_tokens: int | None = None  # None until it first runs
    finished: FinishReason | None = None
    row: int = -1

    @property
    def length(self) -> int:
        """The number of tokens, with those that are sampled and not reported yet."""
        return self.prompt_tokens + self.sampled

    @property
    def remaining(self) -> int:
        """The number of tokens that no launched pass samples."""
        return self.how.max_tokens - self.sampled

    @property
    def longest(self) -> int:
        """The positions it may take in the cache; the last token takes none."""
        return self.prompt_tokens + self.how.max_tokens - 1

    def output(self, tokens: Sequence[int] = (), text: str = "") -> Output:
        """Return the report of these new tokens, which are already among `tokens`."""
        completion = len(self.tokens) - self.prompt_tokens
        counts = (self.prompt_tokens, completion, self.cached_tokens or 0)
        return Output(self.id, tuple(tokens), text, self.finished, *counts)
