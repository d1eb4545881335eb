"""Split prompts over passes with one mistake each, as answers to exercise 7 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable


class NoProgress(ValueError):
    """A pass has no token for an unfinished prompt."""


def planned(
    decoding: int,
    prompts: list[int],
    budget: int,
    *,
    taken: Callable = lambda decoding, finished: decoding + finished,
    alone: bool = False,  # one prompt per pass
    youngest: bool = False,
    whole: bool = False,  # only whole prompts, as long as they fit
    shares: bool = False,  # equal shares of the budget
    per_prompt: bool = False,  # the budget is each prompt's own
    at_once: bool = False,  # a prompt that ends in a pass takes a token of the same pass
    last: int = 0,  # added to `stop`
    lengths: bool = False,  # (number, start, length)
    restart: bool = False,  # start is always 0
    guarded: bool = True,
) -> list[list[tuple[int, int, int]]]:
    """Return the right passes; other settings than the defaults make mistakes."""
    passes: list[list[tuple[int, int, int]]] = []
    computed = [0] * len(prompts)
    while computed != list(prompts):
        finished = sum(done == length for done, length in zip(computed, prompts, strict=True))
        left = full = budget - taken(decoding, finished)
        if left < 1:
            if guarded:
                raise NoProgress
            break
        open_ = [i for i in range(len(prompts)) if computed[i] < prompts[i]]
        order = open_[::-1] if youngest else open_
        chunks = []
        for i in order:
            most = full if per_prompt else max(1, full // len(open_)) if shares else left
            stop = min(prompts[i], computed[i] + min(most, full if per_prompt else left))
            if stop <= computed[i] or (whole and chunks and stop < prompts[i]):
                continue
            start = computed[i]
            chunks.append((i, 0 if restart else start, stop - start if lengths else stop + last))
            left -= stop - start + (at_once and stop == prompts[i])
            computed[i] = stop
            if alone:
                break
        passes.append(sorted(chunks) if shares else chunks)
    return passes


def _with(**settings) -> Callable:
    def made(*given):
        try:
            return planned(*given, **settings)
        except NoProgress:
            return "ValueError"

    return made


MISTAKES = [
    ("those who decode are not subtracted from the budget", _with(taken=lambda decoding, finished: 0)),
    ("requests whose prompt was finished decode, too: each takes a token of every later pass",
     _with(taken=lambda decoding, finished: decoding)),
    ("the requests that decode from the beginning are not subtracted from the budget",
     _with(taken=lambda decoding, finished: finished)),
    ("a pass computes chunks of several prompts, while tokens are left", _with(alone=True)),
    ("the youngest prompt comes first: it is the oldest one's turn", _with(youngest=True)),
    ("a prompt that does not fit as a whole gets no chunk; it gets the tokens that are left", _with(whole=True)),
    ("the tokens are shared out equally; the oldest prompt gets as many as it needs", _with(shares=True)),
    ("each prompt gets the whole budget; all chunks of a pass share it", _with(per_prompt=True)),
    ("a request decodes in the passes after the one that finishes its prompt, not in the same one",
     _with(at_once=True)),
    ("`stop` is the first position that is not computed, not the last one that is", _with(last=-1)),
    ("the third number of a chunk is `stop`, not its length", _with(lengths=True)),
    ("a later chunk starts where the one before stopped, not at 0", _with(restart=True)),
    ("if decoding leaves no token and a prompt is unfinished, raise ValueError", _with(guarded=False)),
]  # fmt: skip
