"""Wrong masks, and loops over the tiles that start or end in the wrong place, and their gradients."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass

RULE = "query i sees the keys j ≤ i + Lk − Lq"
TURNED_SIGN = f"Lk − Lq has the wrong sign: {RULE}"


def mask_causes(e: BackwardPass, name: str):
    """Yield (sentence, the pass with P only where the mistake computes it)."""
    for sentence, mask in lost_tiles(e, name):
        yield sentence, e.but(seen=e.seen & mask)
    if not e.causal:
        yield "the causal mask is applied although CAUSAL is False", e.but(seen=e.seen_to(e.Lk - e.Lq))
    for sentence, mask in always_wrong_walks(e, name):
        yield sentence, e.but(seen=e.seen & mask)
    if e.causal:
        for sentence, mask in wrong_walks(e, name):
            yield sentence, e.but(seen=e.seen & mask)
        for sentence, mask in wrong_masks(e):
            yield sentence, e.but(seen=mask)
            yield sentence, e.but(seen=mask & e.walked(e.corner))


def lost_tiles(e: BackwardPass, name: str):
    """Yield loops that skip the partial tile at the end, and accumulators that keep only one tile."""
    if name == "dq":
        along, length, end = "keys", e.Lk, e.first_key + e.BLOCK_N
        last = (end >= length) | ~e.walked(e.corner - e.BLOCK_N)
    else:
        along, length, end = "queries", e.Lq, e.first_query + e.BLOCK_M
        last = end >= length
    yield f"the last, partial tile of {along} is skipped", end <= length
    yield f"only the last tile of {along} contributes; add every tile to {NAMES[name]}", last


def always_wrong_walks(e: BackwardPass, name: str):
    """Yield loops that start or end at the program's own rows, with or without a mask."""
    if name == "dq":
        yield "the loop over the keys starts at the tile's own first row; start at key 0", e.first_key >= e.first_query
    else:
        yield "the loop over the queries ends at the diagonal; end at Lq", e.first_query < e.first_key + e.BLOCK_N


def wrong_walks(e: BackwardPass, name: str):
    """Yield wrong ends of dQ's loop over the keys, and wrong starts of dK's and dV's loop over the queries."""
    if name == "dq":
        forgotten = "end omits Lk − Lq: the tile's last query sees the keys up to its own index + Lk − Lq"
        skipped = "the loop ends before the diagonal: the tile's last query sees more keys than its first query"
    else:
        forgotten = "start omits Lk − Lq: the first query that sees key j is query j − (Lk − Lq)"
        skipped = "the tiles on the diagonal are skipped, but they are partly visible"
    if e.corner:
        yield f"the loop's {forgotten}", e.walked(0)
        yield TURNED_SIGN, e.walked(-e.corner)
        if name == "dq":
            first, early = "the first row's keys: the tile's last query sees more keys", "a key too early"
            yield f"the loop ends with {first}", e.first_key < e.first_query + 1 + e.corner
            yield f"the loop ends {early}: end is first + BLOCK_M + Lk − Lq", e.walked(e.corner - 1)
        else:
            begin = (e.first_key - e.corner).clamp(min=0)
            up, rows = -(-begin // e.BLOCK_M) * e.BLOCK_M, torch.arange(e.Lq)[:, None]
            yield "the start is rounded up; start at the tile of the first query that sees a key", rows >= up
            late = (begin + 1) // e.BLOCK_M * e.BLOCK_M
            yield "the loop starts a query too late; start at the tile of query first − (Lk − Lq)", rows >= late
    else:  # in other cases this can look like one of those; here it shows first
        yield skipped, e.first_key + e.BLOCK_N <= e.first_query + 1
        yield skipped, torch.arange(e.Lk) < e.first_query


def wrong_masks(e: BackwardPass):
    yield "the diagonal is off by one: query i does see key i + Lk − Lq", e.seen_to(e.corner - 1)
    yield "the diagonal is off by one: query i does not see key i + Lk − Lq + 1", e.seen_to(e.corner + 1)
    yield "the causal mask is missing where you recompute P", e.seen_to(e.Lk)
    yield f"the diagonal starts from the top left corner: {RULE}", e.seen_to(0)
    yield f"the causal mask is reversed: {RULE}", ~e.seen_to(e.corner - 1)
    yield f"the causal mask is reversed: {RULE}, and no others", ~e.seen
    yield TURNED_SIGN, e.seen_to(-e.corner)
    yield TURNED_SIGN, e.seen_to(-e.corner) & e.walked(-e.corner)
