"""Common mistakes with a mask, such as a shifted diagonal, and the attention that they compute."""

from collections.abc import Iterator

import torch

from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.attention.tile_map import SKIPPED, WHOLE, tile_states
from labs_helpers.course.verdict import Candidates

DIAGONAL = "the diagonal is one too far"
WINDOW = "a query sees `window` keys, including the one at its own position"


def mask_causes(name: str, exact: Exact, found, BLOCK_M: int, BLOCK_N: int, window: float) -> Candidates:
    """Yield the causes of a wrong `name`, 'o' or 'lse'. found: the answer's (o, lse), or None. window: keys, or ∞."""
    for sentence, rows in _nan_rows(exact, BLOCK_M, BLOCK_N):
        yield sentence, getattr(exact, name).where(~rows[:, None] if name == "o" else ~rows, torch.nan)
    if name == "lse":
        if found:
            yield from _large_negative(exact, *(t.cpu().double() for t in found))
        blind = ~exact.seen.any(1)
        yield "a row that sees no key has log-sum-exp −inf: its m_i stays −inf", exact.lse.where(~blind, 0.0)
        yield (
            "the maximum includes scores of unseen keys; mask them first",
            exact.lse.where(~blind, _largest_visited(exact, BLOCK_M, BLOCK_N)),
        )
    for sentence, wrong in _wrong_masks(exact, BLOCK_M, BLOCK_N, window):
        yield sentence, getattr(wrong, name)


def _nan_rows(exact: Exact, BLOCK_M: int, BLOCK_N: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (sentence, the rows that the mistake turns into NaN)."""
    Lq, Lk = exact.seen.shape
    sees = tile_states(exact.seen.numpy(), 1, BLOCK_N) != SKIPPED  # (Lq, key tiles)
    visits = tile_states(exact.seen.numpy(), BLOCK_M, BLOCK_N).repeat(BLOCK_M, 0)[:Lq] != SKIPPED
    ragged = torch.from_numpy(visits[:, -1] & bool(Lk % BLOCK_N))
    late = torch.from_numpy(visits.any(1) & ~sees[range(Lq), visits.argmax(1)])  # sees no key of its first tile
    yield "V is not 0 past the last key: P is 0 there, but 0 · NaN is NaN; give V's load other=0.0", ragged
    yield "−inf − (−inf) is NaN; subtract 0 from the scores of a row that has seen no key yet", late
    yield "rows that see no key compute 0/0; divide by 1 where l_i is 0", ~exact.seen.any(1)


def _largest_visited(exact: Exact, BLOCK_M: int, BLOCK_N: int) -> torch.Tensor:
    """Return the largest score in the tiles that a row's program visits, masked or not; K is 0 past its end."""
    states = torch.from_numpy(tile_states(exact.seen.numpy(), BLOCK_M, BLOCK_N)) != SKIPPED
    visited = states.repeat_interleave(BLOCK_M, 0)[: exact.seen.shape[0]].repeat_interleave(BLOCK_N, 1)
    scores = exact.scale * exact.q @ exact.k.mT
    padded = torch.nn.functional.pad(scores, (0, visited.shape[1] - scores.shape[3]))
    return padded.masked_fill(~visited, -torch.inf).amax(-1)


def _large_negative(exact: Exact, o: torch.Tensor, lse: torch.Tensor) -> Candidates:
    """Yield the cause of a finite log-sum-exp in a row that sees no key: a large negative number instead of −inf."""
    rows = ~exact.seen.any(1) & lse.isfinite() & (lse < -1000)
    # With −10⁹ in the mask all keys get the same weight, and O is the mean of V; with m_i alone, l_i stays 0.
    where = "a score is masked with" if bool((o[rows] != 0).any()) else "m_i starts at"
    yield (
        f'{where} a large negative number, not -float("inf"). In a row that sees no key, s − m is then 0, and exp(0) 1',
        exact.lse.where(~rows, lse),
    )


def _wrong_masks(exact: Exact, BLOCK_M: int, BLOCK_N: int, window: float) -> Iterator[tuple[str, Exact]]:
    """Yield (sentence, attention under the wrong mask), restricted to visited tiles; K and V are 0 past their end."""
    Lq, Lk = exact.seen.shape
    padding = (0, 0, 0, -Lk % BLOCK_N)
    exact = exact.but(k=torch.nn.functional.pad(exact.k, padding), v=torch.nn.functional.pad(exact.v, padding))
    keys = torch.arange(exact.k.shape[2])
    distance = torch.arange(Lq)[:, None] + Lk - Lq - keys
    seen = (distance >= 0) & (distance < window)
    states = torch.from_numpy(tile_states(exact.seen.numpy(), BLOCK_M, BLOCK_N))
    states = states.repeat_interleave(BLOCK_M, 0)[:Lq].repeat_interleave(BLOCK_N, 1)
    visited = states != SKIPPED
    for sentence, mask in _masks(distance, Lk - Lq, window):
        yield sentence, exact.but(seen=mask & visited)
        yield sentence, exact.but(seen=(mask | (states == WHOLE)) & visited)
    for sentence, unmasked in _unmasked_tiles(Lq, Lk, keys, BLOCK_M, BLOCK_N, window):
        yield sentence, exact.but(seen=(seen | unmasked) & visited)
    if window < torch.inf:
        begin = (
            (torch.arange(Lq)[:, None] // BLOCK_M * BLOCK_M + Lk - Lq - window + 1).clamp(min=0) // BLOCK_N * BLOCK_N
        )
        first_alone = (distance >= 0) & ((distance < window) | (keys >= begin + BLOCK_N))
        yield (
            "only the first tile is masked at the window's edge, but the edge may cross several tiles",
            exact.but(seen=first_alone & visited),
        )
    zeros = exact.but(seen=visited)
    zeros.scores = zeros.scores.where(seen | ~visited, 0.0)
    yield "the scores of unseen keys are set to 0; set them to −inf, for which exp is 0", zeros


def _masks(distance: torch.Tensor, corner: int, window: float) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (sentence, the scores that the wrong mask keeps). distance: query position minus key position."""
    causal, near = distance >= 0, distance < window
    yield (
        "the diagonal starts from the top left; start from the bottom right: query r sees keys up to r + Lk − Lq",
        (distance >= corner) & (distance < window + corner),
    )
    if corner:
        turned = "the mask has Lk − Lq with the wrong sign: query r sees keys up to r + Lk − Lq"
        yield turned, (distance >= 2 * corner) & (distance < window + 2 * corner)
        yield turned, (distance >= 2 * corner) & near
    yield f"{DIAGONAL} left: a query sees the key at its own position", (distance > 0) & near
    yield f"{DIAGONAL} right: here a query sees the key after its own position", (distance >= -1) & near
    yield "nothing is masked", torch.ones_like(causal)
    yield "the mask is reversed: a query sees the keys up to its own position", distance <= 0
    if window < torch.inf:
        yield f"the window is one too long: {WINDOW}", causal & (distance <= window)
        yield f"the window is one too short: {WINDOW}", causal & (distance < window - 1)
        yield "the window is not applied", causal
        if corner:
            yield (
                "the window's first edge omits Lk − Lq, but it moves with the diagonal",
                causal & (distance < window + corner),
            )
        yield "the window extends to both sides of the query", distance.abs() < window
        yield (
            "the window contains later keys; it ends at the query's own position",
            (distance <= 0) & (distance > -window),
        )
        yield (
            "every query uses the last query's window; a query's window ends at its own position",
            (causal & (torch.arange(distance.shape[1])[None] >= distance.shape[0] + corner - window)),
        )
        for by, side in ((1, "left"), (-1, "right")):
            moved = (distance >= by) & (distance < window + by)
            yield f"the window is one key too far {side}: it ends at the query's own position", moved
        yield "the causal mask is missing", near


def _unmasked_tiles(Lq: int, Lk: int, keys, BLOCK_M: int, BLOCK_N: int, window: float):
    """Yield (sentence, the scores in tiles that wrongly get no mask), bool (Lq, keys)."""
    first, begins = torch.arange(Lq)[:, None] // BLOCK_M * BLOCK_M, keys // BLOCK_N * BLOCK_N
    ends, full, end = begins + BLOCK_N, first + 1 + Lk - Lq, (first + BLOCK_M + Lk - Lq).clamp(max=Lk)
    inside = begins >= end - window
    yield (
        "`full` is too large by one: the program's first row sees the keys below first + 1 + Lk − Lq",
        (ends <= full + 1) & inside,
    )
    yield (
        "`full` is where the last row's keys end; the first row has to see all keys before it, too",
        (ends <= end) & inside,
    )
    if window < torch.inf:
        tile = (first + Lk - Lq - window + 1).clamp(min=0) // BLOCK_N * BLOCK_N
        yield (
            "only the first tile is masked, but the diagonal and the window's edge may cross several tiles",
            begins > tile,
        )
        yield (
            "the window's first edge is the first row's; the last row's edge is further right",
            (ends <= full) & (begins >= first + Lk - Lq - window),
        )
    part = "a tile needs the mask where its end, start + BLOCK_N, is past `full`, not only where it starts there"
    yield part, (begins < full) & inside
    yield part, (begins <= full) & inside
    yield "only the last tile is masked, but the diagonal may cross several tiles", (ends < end) & inside
    if window < torch.inf:
        yield "the tiles on the window's first edge need the mask too", ends <= full
        yield (
            "the window's first edge is one too far left: the last row of a program does not see that key",
            (ends <= full) & (begins >= end - window - 1),
        )
