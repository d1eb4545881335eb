"""Verify proposals with one mistake each, as answers to exercise 9 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labs_helpers.serving.lab13.drawn import Step, pick


def run(answer: Callable, given: Step) -> dict[str, Any]:
    """Return an answer's tokens, the number of draws, and the weights of the last one, which add up to 1."""
    drawn: list[torch.Tensor] = []

    def draw(weights):
        drawn.append(torch.as_tensor(weights, dtype=torch.float64))
        # A mistake may draw with negative weights, or with none: they show in the comparison.
        return pick(drawn[-1].clamp(min=0), 0.43)

    p, q = given.distributions()
    tokens = answer(p, q, list(given.proposed), list(given.uniform), draw)
    weights = drawn[-1] / drawn[-1].sum() if drawn else torch.zeros(given.V, dtype=torch.float64)
    return {"tokens": tokens, "draws": len(drawn), "weights": weights}


def verified(
    p: torch.Tensor,
    q: torch.Tensor,
    proposed: list[int],
    uniform: list[float],
    draw: Callable,
    *,
    accepts: Callable = lambda u, p, q: u * q < p,
    rest: Callable = lambda p, q: (p - q).clamp(min=0),
    at: Callable = lambda i: i,  # the place whose p is compared
    stops: bool = True,  # a rejection ends the step
    bonus: Callable = lambda p, K: p[K],
    extra: bool = True,  # a token is drawn behind K accepted ones
    replaces: bool = True,
    argmax: bool = False,
    kept: bool = False,  # the rejected proposal stays
) -> list[int]:
    """Return the right tokens; other settings than the defaults make mistakes."""
    tokens: list[int] = []
    for i, token in enumerate(proposed):
        of_p, of_q = p[at(i)], q[i]
        if accepts(uniform[i], float(of_p[token]), float(of_q[token])) if not argmax else token == int(of_p.argmax()):
            tokens.append(token)
            continue
        if kept:
            tokens.append(token)
        if replaces:
            tokens.append(draw(rest(of_p, of_q)))
        if stops:
            return tokens
    return [*tokens, draw(bonus(p, len(proposed)))] if extra else tokens


def _with(**settings) -> Callable:
    return lambda *given: verified(*given, **settings)


ROUND = "the comparison is the wrong way round: a proposal is accepted if the uniform number is below p / q"
MISTAKES = [
    ("the replacement is drawn from p; p has already got its share from the accepted proposals: max(0, p − q)",
     _with(rest=lambda p, q: p)),
    ("the replacement is drawn from q, the draft's distribution", _with(rest=lambda p, q: q)),
    ("the weights of the replacement are |p − q|; where q is larger, they are 0",
     _with(rest=lambda p, q: (p - q).abs())),
    ("the weights of the replacement are max(0, q − p): exchange p and q",
     _with(rest=lambda p, q: (q - p).clamp(min=0))),
    ("the weights of the replacement are negative where q is larger than p: use 0 there",
     _with(rest=lambda p, q: p - q)),
    ("the probability to accept is q / p; it is min(1, p / q)", _with(accepts=lambda u, p, q: u * p < q)),
    (ROUND, _with(accepts=lambda u, p, q: u * q >= p)),
    (ROUND, _with(accepts=lambda u, p, q: u * q > p)),
    ("the probability to accept is p; it is min(1, p / q)", _with(accepts=lambda u, p, q: u < p)),
    ("the probability to accept is q; it is min(1, p / q)", _with(accepts=lambda u, p, q: u < q)),
    ("a proposal is accepted only if p ≥ q; if p < q, it is accepted with the probability p / q",
     _with(accepts=lambda u, p, q: p >= q)),
    ("the uniform numbers are not used: every proposal that p allows is accepted",
     _with(accepts=lambda u, p, q: p > 0)),
    ("a proposal is accepted only if it is the target's most probable token", _with(argmax=True)),
    ("every proposal is accepted", _with(accepts=lambda u, p, q: True)),
    ("every proposal is compared with p[0]; p[i] belongs to proposal i", _with(at=lambda i: 0)),
    ("proposal i is compared with p[i + 1]; p[i] is the distribution after i accepted proposals",
     _with(at=lambda i: i + 1)),
    ("proposals after a rejected one are still looked at; they continue a text that does not exist",
     _with(stops=False)),
    ("no token is drawn after K accepted proposals: p[K] is there already", _with(extra=False)),
    ("the token after K accepted proposals is drawn from p[K − 1]; it comes from p[K]",
     _with(bonus=lambda p, K: p[max(K - 1, 0)])),
    ("the token after K accepted proposals is drawn from p[0]; it comes from p[K]", _with(bonus=lambda p, K: p[0])),
    ("a rejected proposal is not replaced", _with(replaces=False)),
    ("the rejected proposal is returned together with its replacement", _with(kept=True)),
]  # fmt: skip
