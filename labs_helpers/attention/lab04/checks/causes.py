"""What common mistakes with the running softmax make of attention."""

import math

import torch

from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.course.verdict import Candidates

LOG2E = math.log2(math.e)
WITH_EXP = "LOG2E is for exp2; with exp the scores are multiplied once too often"


def loop_causes(name: str, exact: Exact, found, BLOCK_N: int) -> Candidates:
    """Of `name`, 'o' or 'lse'. found: the answer's (o, lse)."""
    Lk, scale = exact.k.shape[-2], exact.scale
    last_tile = torch.arange(Lk) >= (Lk - 1) // BLOCK_N * BLOCK_N
    for sentence, changes in (
        ("scale is missing", {"scale": 1.0}),
        ("scale is applied twice", {"scale": scale**2}),
        ("the default 1/√D stands where scale should", {"scale": exact.q.shape[-1] ** -0.5}),
        ("exp2 takes scores in base 2: multiply them by LOG2E", {"scale": scale / LOG2E}),
        (WITH_EXP, {"scale": scale * LOG2E}),
        ("only the last tile is left: l_i and acc have to be added to", {"seen": exact.seen & last_tile}),
        ("K and V are swapped", {"k": exact.v, "v": exact.k}),
    ):
        yield sentence, getattr(exact.but(**changes), name)
    right = getattr(exact, name)
    for sign, sentence in (
        (1, "exp overflows: the maximum is not subtracted"),
        (-1, "every exp is 0: the running maximum starts at 0, not at −inf, or is not subtracted"),
    ):
        if bool((sign * exact.largest > 80).all()):
            yield sentence, torch.full_like(right, torch.nan if name == "o" else sign * torch.inf)
    yield from _of_o(exact, BLOCK_N) if name == "o" else _of_lse(exact, found, BLOCK_N)


def _of_o(exact: Exact, BLOCK_N: int) -> Candidates:
    sums = torch.exp(exact.lse - exact.largest)[..., None]
    for sentence, kept in (
        ("the accumulator is not rescaled when the maximum grows", {"rescale_o": False}),
        ("l_i is not rescaled when the maximum grows", {"rescale_sum": False}),
        ("neither l_i nor the accumulator is rescaled", {"rescale_o": False, "rescale_sum": False}),
    ):
        yield sentence, _loop(exact, BLOCK_N, **kept)[0]
    yield "O is not divided by l_i", exact.o * sums
    yield "O is multiplied by l_i", exact.o * sums**2


def _of_lse(exact: Exact, found, BLOCK_N: int) -> Candidates:
    lse, m = exact.lse, exact.largest
    sums = torch.exp(lse - m)
    yield "l_i is not rescaled when the maximum grows", _loop(exact, BLOCK_N, rescale_sum=False)[1]
    yield "the log-sum-exp is in base 2: divide it by LOG2E", lse * LOG2E
    yield "m_i is in base 2: divide it by LOG2E too", m * LOG2E + sums.log()
    yield "log2(l_i) is in base 2: divide it by LOG2E too", m + sums.log() * LOG2E
    yield "m_i is missing: the log-sum-exp is m_i + log l_i", sums.log()
    yield "log l_i is missing: the log-sum-exp is m_i + log l_i", m
    yield "l_i itself is added, not its logarithm", m + sums
    yield "multiplied by LOG2E instead of divided: that goes from base e to base 2", lse * LOG2E**2
    yield "the sum is stored, not its logarithm", sums
    yield WITH_EXP, exact.but(scale=exact.scale * LOG2E).lse + m * (1 - LOG2E)
    if bool(found[0].nan_to_num().any()):  # O holds the last tile then
        yield "the new maximum is not kept: m_i = m_new at the end of the step", torch.full_like(lse, -torch.inf)


def _loop(exact: Exact, BLOCK_N: int, rescale_sum=True, rescale_o=True) -> tuple[torch.Tensor, torch.Tensor]:
    """(o, lse) by the tile loop, where a new maximum may leave l or the accumulator as it was."""
    shape = exact.q.shape[:-1]
    m, total, o = exact.q.new_full(shape, -torch.inf), exact.q.new_zeros(shape), torch.zeros_like(exact.q)
    for s, v in zip(exact.scores.split(BLOCK_N, -1), exact.v.split(BLOCK_N, -2), strict=True):
        m_new = torch.maximum(m, s.amax(-1))
        shift = m_new.clamp(min=-1e30)
        p, factor = torch.exp(s - shift[..., None]), torch.exp(m - shift)
        total = total * (factor if rescale_sum else 1.0) + p.sum(-1)
        o = o * (factor[..., None] if rescale_o else 1.0) + p @ v
        m = m_new
    return o / total.masked_fill(total == 0, 1.0)[..., None], m + total.log()
