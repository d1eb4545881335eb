"""Choose the number of proposals with one mistake each, as answers to exercise 10 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable


def expected(alpha: float, k: int) -> float:
    return sum(alpha**i for i in range(k + 1))


def chosen(
    alpha: float,
    cost: float,
    most: int,
    *,
    tokens: Callable = expected,
    time: Callable = lambda k, cost: k * cost + 1,
    ks: Callable = lambda most: range(most + 1),
    by: Callable = lambda tokens, speed_up: speed_up,
    result: Callable = lambda tokens, time: tokens / time,
    last: bool = False,  # of equally good ones
    worst: bool = False,
) -> tuple[int, float, float]:
    """Return the right answer; other settings than the defaults make mistakes."""
    found = [(k, tokens(alpha, k), result(tokens(alpha, k), time(k, cost))) for k in ks(most)]
    found = found[::-1] if last else found
    return (min if worst else max)(found, key=lambda one: by(*one[1:]))


def _with(**settings) -> Callable:
    return lambda *given: chosen(*given, **settings)


OWN = "the target's own token is missing: even if every proposal is rejected, a step makes 1 token"
MISTAKES = [
    (OWN, _with(tokens=lambda alpha, k: sum(alpha**i for i in range(1, k + 1)))),
    (OWN, _with(tokens=lambda alpha, k: sum(alpha**i for i in range(1, k + 1)) if k else 1)),
    ("a proposal counts only if all before it were accepted: proposal i with probability alpha^i, not alpha",
     _with(tokens=lambda alpha, k: 1 + alpha * k)),
    ("a step keeps the proposals before the first rejected one, not all or none",
     _with(tokens=lambda alpha, k: 1 + k * alpha**k)),
    ("every proposal is counted as accepted", _with(tokens=lambda alpha, k: k + 1)),
    ("one proposal too many: alpha^i for i from 0 to k", _with(tokens=lambda alpha, k: expected(alpha, k + 1))),
    ("one proposal too few: alpha^i for i from 0 to k",
     _with(tokens=lambda alpha, k: expected(alpha, max(k - 1, 0)))),
    ("the draft's passes take time, too: k · cost", _with(time=lambda k, cost: 1)),
    ("the target's pass takes time, too: 1", _with(time=lambda k, cost: k * cost if k else 1)),
    ("k proposals take k passes of the draft", _with(time=lambda k, cost: cost + 1)),
    ("k proposals take k passes of the draft, not k + 1", _with(time=lambda k, cost: (k + 1) * cost + 1)),
    ("the target makes one pass per step, not one per position", _with(time=lambda k, cost: (k + 1) + k * cost)),
    ("k = 0 is allowed: no speculation may be the best", _with(ks=lambda most: range(1, most + 1))),
    ("k = `most` is allowed", _with(ks=lambda most: range(max(most, 1)))),
    ("the k with the most tokens is chosen; the best speed-up counts", _with(by=lambda tokens, speed_up: tokens)),
    ("of equally good k, the smallest is asked for", _with(last=True)),
    ("the worst k is chosen", _with(worst=True)),
    ("the speed-up is upside down: tokens divided by the time of a step",
     _with(result=lambda tokens, time: time / tokens, worst=True)),
]  # fmt: skip
