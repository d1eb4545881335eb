"""The tile loop in float64 with float32's overflow, and the results of mistakes in one of its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.attention.tile_map import SKIPPED, tile_states

LOG2E = math.log2(math.e)
State = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # m, l: (B, H, Lq, 1); o: (B, H, Lq, D)


@dataclass
class Step:
    """One step of the loop: m, l (total) and o before it, and the tile's scores and values, padded to BLOCK_N."""

    m: torch.Tensor
    total: torch.Tensor
    o: torch.Tensor
    s: torch.Tensor
    v: torch.Tensor

    def __post_init__(self):
        self.best = self.s.amax(-1, keepdim=True)
        self.m_new = torch.maximum(self.m, self.best)
        self.p = self.weights(self.m_new)
        self.f = exp(self.m - _finite(self.m_new))

    def weights(self, m, base: float = 1.0) -> torch.Tensor:
        """exp(base · (s − m))"""
        return exp(base * (self.s - _finite(m)))

    def ends(self, m=None, p=None, fl=None, fo=None, pv=None) -> State:
        """Return (m, l, o) after the step. fl, fo: the factors of l and o; by default those of this step."""
        m, p = self.m_new if m is None else m, self.p if p is None else p
        fl, fo = self.f if fl is None else fl, self.f if fo is None else fo
        return m, self.total * fl + p.sum(-1, keepdim=True), self.o * fo + (p @ self.v if pv is None else pv)

    def old_maximum(self) -> State:
        return self.ends(p=exp(self.s - self.m))

    def tile_maximum(self) -> State:
        f = exp(self.m - _finite(self.best))
        return self.ends(self.best, self.weights(self.best), f, f)

    def first_maximum(self) -> State:
        m = self.best.where(self.m.isinf(), self.m)
        f = exp(self.m - _finite(m))
        return self.ends(m, self.weights(m), f, f)

    def guarded_by_the_old(self) -> State:
        shift = torch.where(self.m.isinf(), 0.0, self.m_new)
        f = exp(self.m - shift)
        return self.ends(p=exp(self.s - shift), fl=f, fo=f)

    def divided(self) -> State:
        m, total, o = self.ends()
        return m, total, o / total.masked_fill(total == 0, 1.0)

    def scaled_after(self, c: float) -> State:
        """Take the maximum of scores that are c times too large and subtract it from the right scores."""
        m = torch.maximum(self.m, c * self.best)
        f = exp(self.m - _finite(m))
        return self.ends(m, self.weights(m), f, f)

    def each_a_softmax(self) -> State:
        return self.ends(pv=self.p / self.p.sum(-1, keepdim=True) @ self.v)

    def shift_kept(self) -> State:
        return self.ends(_finite(self.m_new))

    def whole_maximum(self, BLOCK_M: int) -> State:
        """Use the maximum over all rows of a program's tile, although each row needs its own."""
        m = torch.maximum(self.m, of_tiles(self.best, BLOCK_M, torch.amax))
        f = exp(self.m - _finite(m))
        return self.ends(m, self.weights(m), f, f)

    def differences(self) -> torch.Tensor:
        return (self.s - _finite(self.m_new)).sum(-1, keepdim=True)

    def of_scores(self, s: torch.Tensor) -> State:
        return Step(self.m, self.total, self.o, s, self.v).ends()


TURNED = "the factor is inverted: its exponent is m_i − m_new, so it is at most 1"
TOO_MUCH = "the new part is multiplied by the factor as well; rescale only the old part, then add"
TWICE = "acc is added twice: tl.dot(p, v, acc) already adds acc, so write acc = tl.dot(…), not acc += tl.dot(…)"
MIXED = "p and the factor use different bases, exp and exp2:"
OVER_AND_OVER = "acc is divided by l_i in each step; divide once, after the loop"
WHOLE = "each row needs its own value, not one value"
KEPT = "every step subtracts the first step's maximum; use tl.maximum(m_i, this step's maximum)"


def mistakes(scale: float, BLOCK_M: int, BLOCK_N: int) -> Iterator[tuple[str, Callable[[Step], State]]]:
    """Yield (sentence, the step that makes this mistake)."""
    yield "the accumulator is not rescaled when the maximum grows", lambda x: x.ends(fo=1.0)
    yield "l_i is not rescaled when the maximum grows", lambda x: x.ends(fl=1.0)
    yield (
        "neither l_i nor the accumulator is rescaled: the factor is exp2(m_i − m_new), with m_i from before this step",
        lambda x: x.ends(fl=1.0, fo=1.0),
    )
    yield TWICE, lambda x: x.ends(pv=x.o * x.f + x.p @ x.v)
    yield TWICE, lambda x: x.ends(pv=x.o + x.p @ x.v)
    yield TOO_MUCH, lambda x: x.ends(p=x.p * x.f)
    yield TOO_MUCH, lambda x: x.ends(pv=x.f * (x.p @ x.v))
    yield TOO_MUCH, lambda x: x.ends(p=x.p * x.f, pv=x.p @ x.v)
    for sentence, of_l, of_o in (
        (TURNED, True, True),
        (f"{TURNED}; here that of l_i", True, False),
        (f"{TURNED}; here that of acc", False, True),
    ):
        yield (
            sentence,
            lambda x, of_l=of_l, of_o=of_o: x.ends(
                fl=exp(_finite(x.m_new) - x.m) if of_l else None, fo=exp(_finite(x.m_new) - x.m) if of_o else None
            ),
        )
    yield "p uses the old maximum; compute exp2(s − m_new)", Step.old_maximum
    yield "the maximum covers only this step; use tl.maximum with m_i, or the factor overflows", Step.tile_maximum
    yield KEPT, Step.first_maximum
    yield (
        "the guard tests m_i, the old maximum; subtract 0 only where the new maximum, m_new, is −inf",
        Step.guarded_by_the_old,
    )
    yield OVER_AND_OVER, Step.divided
    yield "P is divided by the tile's sum in each step; divide once, by l_i, after the loop", Step.each_a_softmax
    yield "the 0 that you subtract while the maximum is −inf is kept as the maximum; keep m_new", Step.shift_kept
    if BLOCK_M > 1:
        yield f"{WHOLE} for the whole tile: tl.max(s, axis=1)", lambda x: x.whole_maximum(BLOCK_M)
        yield (
            f"{WHOLE} for the whole tile: tl.sum(p, axis=1)",
            lambda x: (x.m_new, x.total * x.f + of_tiles(x.p.sum(-1, keepdim=True), BLOCK_M, torch.sum), x.ends()[2]),
        )
    yield "the sum is of s − m_new; sum its exponential", lambda x: (x.m_new, x.total * x.f + x.differences(), x.o)
    yield (
        "l_i adds the mean of p in each step; add tl.sum(p)",
        lambda x: (x.m_new, x.total * x.f + x.p.sum(-1, keepdim=True) / BLOCK_N, x.ends()[2]),
    )
    yield (
        "l_i adds the maximum of p in each step; add tl.sum(p)",
        lambda x: (x.m_new, x.total * x.f + x.p.amax(-1, keepdim=True), x.ends()[2]),
    )
    yield "l_i is overwritten in each step; add to it", lambda x: x.ends(fl=0.0)
    yield "acc is overwritten in each step; add to it", lambda x: x.ends(fo=0.0)
    yield "the result of tl.dot is not used; write acc = tl.dot(p, v, acc)", lambda x: x.ends(pv=0.0)
    yield from roundings("float16", scale)
    yield (
        "P is rounded to float16, although V is float32: p.to(v.dtype)",
        lambda x: x.ends(pv=x.p.half().double() @ x.v),
    )
    for base in (LOG2E, 1 / LOG2E):
        yield f"{MIXED} p has the wrong one", lambda x, b=base: x.ends(p=x.weights(x.m_new, b))
        yield (
            f"{MIXED} the factor has the wrong one",
            lambda x, b=base: x.ends(fl=exp(b * (x.m - _finite(x.m_new))), fo=exp(b * (x.m - _finite(x.m_new)))),
        )
    for c in (1 / scale, 1 / (scale * LOG2E)):
        yield "the maximum is taken before the scores are scaled; scale first", lambda x, c=c: x.scaled_after(c)


def roundings(to: str, scale: float) -> Iterator[tuple[str, Callable[[Step], State]]]:
    """Yield roundings to 16 bits of an accumulator, the scores or the factor; `to` names the dtype in the sentence."""
    yield f"acc is rounded to {to} in each step; keep it in float32", lambda x: _rounded(x, 2)
    yield f"l_i is rounded to {to} in each step; keep it in float32", lambda x: _rounded(x, 1)
    for rounded in score_roundings(scale):
        yield f"the scores are rounded to {to}; keep them in float32", lambda x, r=rounded: x.of_scores(r(x.s))
    yield (
        f"the exponentials are rounded to {to} before you sum them; sum them in float32",
        lambda x: (x.m_new, x.total * x.f + x.p.half().double().sum(-1, keepdim=True), x.ends()[2]),
    )
    yield (
        f"the factor is rounded to {to}; keep it in float32",
        lambda x: x.ends(fl=x.f.half().double(), fo=x.f.half().double()),
    )


def score_roundings(scale: float) -> Iterator[Callable[[torch.Tensor], torch.Tensor]]:
    """Yield functions that round the scores, scale · Q·Kᵀ, to 16 bits at different points."""

    def rounded(s, at, factors):
        s = (at * s).half().double()
        for factor in factors:  # a 16-bit block times a number: both factors and the product are rounded
            s, at = (s * torch.tensor(factor).half().double()).half().double(), at * factor
        return s / at

    for at, *factors in (
        (1 / scale,),  # before the scale, after it, and in base 2
        (1.0,),
        (LOG2E,),
        (1 / scale, scale),
        (1 / scale, scale, LOG2E),
        (1 / scale, scale * LOG2E),
        (1.0, LOG2E),
    ):
        yield lambda s, at=at, factors=factors: rounded(s, at, factors)


def walked(exact: Exact, BLOCK_M: int, BLOCK_N: int, step: Callable[[Step], State]) -> dict[str, torch.Tensor]:
    """Return 'o', 'lse' and 'undivided' of a kernel whose programs run `step` on each tile that they visit."""
    visits = torch.from_numpy(tile_states(exact.seen.numpy(), BLOCK_M, BLOCK_N) != SKIPPED)
    visits = visits.repeat_interleave(BLOCK_M, 0)[: exact.seen.shape[0]]
    m, total, o = walk(exact.scores, exact.v, BLOCK_N, step, visits)
    # In exercise 4 every query sees all keys, so a kernel divides by any l; the others divide by 1 instead of 0.
    divisor = total if bool(exact.seen.all()) else total.masked_fill(total == 0, 1.0)
    return {"o": o / divisor, "lse": (m + total.log())[..., 0], "undivided": o}


def walk(scores, v, BLOCK: int, step: Callable[[Step], State], visits=None) -> State:
    """Return m, l and o after all tiles. scores: (…, rows, keys); v: (…, keys, D). visits: bool (rows, tiles)."""
    past = -scores.shape[-1] % BLOCK
    s = torch.nn.functional.pad(scores, (0, past), value=-math.inf)
    v = torch.nn.functional.pad(v, (0, 0, 0, past))
    column = s[..., :1]
    state = torch.full_like(column, -math.inf), torch.zeros_like(column), (0 * column).nan_to_num() * v[..., :1, :]
    for i, (tile, values) in enumerate(zip(s.split(BLOCK, -1), v.split(BLOCK, -2), strict=True)):
        after = tuple(_single(new) for new in step(Step(*state, tile, values)))
        if visits is not None:
            visited = visits[:, i : i + 1]
            after = tuple(new.where(visited, old) for new, old in zip(after, state, strict=True))
        state = after
    return state


def of_tiles(x: torch.Tensor, BLOCK_M: int, reduce: Callable) -> torch.Tensor:
    """Replace each row's number in x, (…, rows, 1), by `reduce` over its tile of BLOCK_M rows."""
    tiles = x.split(BLOCK_M, -2)
    return torch.cat([reduce(tile, dim=-2, keepdim=True).expand_as(tile) for tile in tiles], -2)


def _rounded(x: Step, which: int) -> State:
    return tuple(part.half().double() if i == which else part for i, part in enumerate(x.ends()))


def exp(x: torch.Tensor) -> torch.Tensor:
    return _single(torch.exp(x))


def _single(x: torch.Tensor) -> torch.Tensor:
    """Return x with float32's range: infinite above 3.4·10³⁸, 0 below 10⁻⁴⁵."""
    return x.float().double().where(x.abs().log2().abs() > 125, x)


def _finite(m: torch.Tensor) -> torch.Tensor:
    """Return the maximum to subtract: 0 where no key has been seen."""
    return m.masked_fill(m == -math.inf, 0.0)
