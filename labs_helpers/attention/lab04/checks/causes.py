"""Common mistakes with the running softmax, and the attention that they compute."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.attention.lab04.checks.steps import LOG2E, OVER_AND_OVER, mistakes, roundings, walked
from labs_helpers.course.verdict import Candidates

WITH_EXP = "LOG2E is for exp2; with exp, do not multiply the scores by it"


def loop_causes(name: str, exact: Exact, found, BLOCK_M: int, BLOCK_N: int) -> Candidates:
    """Yield the causes of a wrong `name`, 'o' or 'lse'. found: the answer's (o, lse); None for a passed case."""
    Lk, scale = exact.k.shape[-2], exact.scale
    last_tile = torch.arange(Lk) >= (Lk - 1) // BLOCK_N * BLOCK_N
    for sentence, changes in (
        ("scale is missing", {"scale": 1.0}),
        ("scale is applied twice", {"scale": scale**2}),
        ("the scores are divided by scale", {"scale": 1 / scale}),
        ("the default 1/√D is used instead of scale", {"scale": exact.q.shape[-1] ** -0.5}),
        ("exp2 needs scores in base 2: multiply them by LOG2E", {"scale": scale / LOG2E}),
        (WITH_EXP, {"scale": scale * LOG2E}),
        ("the scores are divided by LOG2E; for exp2, multiply them by it", {"scale": scale / LOG2E**2}),
        ("only the last tile contributes; add to l_i and acc in every step", {"seen": exact.seen & last_tile}),
        ("K and V are swapped", {"k": exact.v, "v": exact.k}),
        ("P is multiplied by K; O is P·V", {"v": exact.k}),
        ("the scores are Q·Vᵀ; they are Q·Kᵀ", {"k": exact.v}),
        ("Q is loaded from another head or batch; load it from the program's own b and h", {"q": _first_head(exact.q)}),
    ):
        yield sentence, getattr(exact.but(**changes), name)
    right = getattr(exact, name)
    for sign, sentence in (
        (1, "exp overflows: the maximum is not subtracted"),
        (-1, "every exp is 0: the running maximum starts at 0, not at −inf, or you do not subtract it"),
    ):
        if bool((sign * exact.largest > 80).all()):
            yield sentence, torch.full_like(right, torch.nan if name == "o" else sign * torch.inf)
    yield from step_causes(name, exact, found, BLOCK_M, BLOCK_N)
    yield from _of_o(exact) if name == "o" else _of_lse(exact, found)
    if found and found[0].dtype == torch.float16:  # float32 has passed
        for sentence, step in roundings("Q's dtype", exact.scale):
            yield sentence, walked(exact, BLOCK_M, BLOCK_N, step)[name]


def step_causes(name: str, exact: Exact, found, BLOCK_M: int, BLOCK_N: int) -> Candidates:
    """Yield mistakes in the loop's step that explain both o and lse.

    An answer that divides O in each step may or may not divide it at the end as well.
    """
    for sentence, step in mistakes(exact.scale, BLOCK_M, BLOCK_N):
        result = walked(exact, BLOCK_M, BLOCK_N, step)
        for o in ("o", "undivided") if sentence == OVER_AND_OVER else ("o",):
            answer = {"o": result[o], "lse": result["lse"]}
            others = zip(("o", "lse"), found or (), strict=bool(found))
            if all(_alike(got, answer[of]) for of, got in others if of != name):
                yield sentence, answer[name]


def _of_o(exact: Exact) -> Candidates:
    sums = torch.exp(exact.lse - exact.largest)[..., None]
    yield "O is not divided by l_i", exact.o * sums
    yield "O is multiplied by l_i; divide it by l_i", exact.o * sums**2
    for divisor, x in (("the log-sum-exp", exact.lse), ("m_i", exact.largest)):
        for base in (1.0, LOG2E):
            yield f"O is divided by {divisor}; divide it by l_i", exact.o * sums / (base * x[..., None])


def _of_lse(exact: Exact, found) -> Candidates:
    lse, m = exact.lse, exact.largest
    sums = torch.exp(lse - m)
    yield "the log-sum-exp is in base 2: divide it by LOG2E", lse * LOG2E
    yield "m_i is in base 2: divide it by LOG2E too", m * LOG2E + sums.log()
    yield "log2(l_i) is in base 2: divide it by LOG2E too", m + sums.log() * LOG2E
    yield "tl.log(l_i) is already natural; divide only m_i by LOG2E", m + sums.log() / LOG2E
    yield "m_i is missing: the log-sum-exp is m_i + log l_i", sums.log()
    yield "m_i is missing: the log-sum-exp is m_i + log l_i", sums.log() * LOG2E
    yield "log l_i is missing: the log-sum-exp is m_i + log l_i", m
    yield "log l_i is missing: the log-sum-exp is m_i + log l_i", m * LOG2E
    yield "with exp, m_i is already natural; divide only log2(l_i) by LOG2E", m / LOG2E + sums.log()
    yield "l_i itself is added; add its logarithm", m + sums
    yield "l_i itself is added; add its logarithm", m + sums / LOG2E
    yield "the logarithm of l_i is subtracted; the log-sum-exp is m_i + log l_i", m - sums.log()
    yield "m_i is subtracted; the log-sum-exp is m_i + log l_i", sums.log() - m
    for base in (1.0, LOG2E):
        yield "m_i and log l_i are multiplied; the log-sum-exp is m_i + log l_i", base * m * sums.log()
    yield "the log-sum-exp is multiplied by LOG2E, which converts from base e to base 2; divide instead", lse * LOG2E**2
    yield "the log-sum-exp is divided by LOG2E, although it is already natural", lse / LOG2E
    yield "the sum is stored instead of its logarithm", sums
    yield WITH_EXP, exact.but(scale=exact.scale * LOG2E).lse + m * (1 - LOG2E)
    if found and bool(found[0].nan_to_num().any()):  # O holds the last tile then
        yield "the new maximum is not kept; set m_i = m_new at the end of the step", torch.full_like(lse, -torch.inf)


def _alike(found: torch.Tensor, answer: torch.Tensor) -> bool:
    """Return whether they agree roughly: infinite and NaN in the same places, and elsewhere to within 1%."""
    return torch.allclose(found.detach().cpu().double(), answer, rtol=1e-2, atol=1e-2, equal_nan=True)


def _first_head(q: torch.Tensor) -> torch.Tensor:
    return q[:1, :1].expand_as(q)
