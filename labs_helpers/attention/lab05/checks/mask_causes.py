"""What a mask that is off makes of a gradient, or a walk along the tiles that begins or ends in the wrong place."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass

RULE = "query i sees the keys j ≤ i + Lk − Lq"
TURNED_SIGN = f"the sign of Lk − Lq is turned: {RULE}"


def mask_causes(e: BackwardPass, name: str):
    """Yields (sentence, the pass with P where the mistake computes it)."""
    for sentence, mask in lost_tiles(e, name):
        yield sentence, e.but(seen=e.seen & mask)
    if not e.causal:
        yield "the causal mask is there where CAUSAL is False", e.but(seen=e.seen_to(e.Lk - e.Lq))
    for sentence, mask in always_wrong_walks(e, name):
        yield sentence, e.but(seen=e.seen & mask)
    if e.causal:
        for sentence, mask in wrong_walks(e, name):
            yield sentence, e.but(seen=e.seen & mask)
        for sentence, mask in wrong_masks(e):
            yield sentence, e.but(seen=mask)
            yield sentence, e.but(seen=mask & e.walked(e.corner))


def lost_tiles(e: BackwardPass, name: str):
    """The partial tile at the end skipped, or accumulators that keep one tile alone."""
    if name == "dq":
        along, length, end = "keys", e.Lk, e.first_key + e.BLOCK_N
        last = (end >= length) | ~e.walked(e.corner - e.BLOCK_N)
    else:
        along, length, end = "queries", e.Lq, e.first_query + e.BLOCK_M
        last = end >= length
    yield f"the last, partial tile of {along} is skipped", end <= length
    yield f"only the last tile of {along} is left: {NAMES[name]} has to be added up", last


def always_wrong_walks(e: BackwardPass, name: str):
    """Walks that begin or end at the program's own rows, causal or not."""
    if name == "dq":
        yield "the walk along the keys begins at key 0, not at the tile's own first row", e.first_key >= e.first_query
    else:
        yield "the walk along the queries goes on to Lq, not to the diagonal", e.first_query < e.first_key + e.BLOCK_N


def wrong_walks(e: BackwardPass, name: str):
    """Of dQ's along the keys a wrong end, of dK's and dV's along the queries a wrong start."""
    if name == "dq":
        forgotten = "end forgets Lk − Lq: the tile's last query sees the keys up to its own place + Lk − Lq"
        skipped = "the loop ends before the diagonal: the tile's last query sees more keys than its first"
    else:
        forgotten = "start forgets Lk − Lq: the first query that sees key j is query j − (Lk − Lq)"
        skipped = "the tiles on the diagonal are skipped; a part of them is seen"
    if e.corner:
        yield f"the loop's {forgotten}", e.walked(0)
        yield TURNED_SIGN, e.walked(-e.corner)
        if name == "dq":
            first, early = "the first row's: the tile's last query sees more keys", "a key too early"
            yield f"the loop's end is {first}", e.first_key < e.first_query + 1 + e.corner
            yield f"the loop ends {early}: end is first + BLOCK_M + Lk − Lq", e.walked(e.corner - 1)
        else:
            begin = (e.first_key - e.corner).clamp(min=0)
            up, rows = -(-begin // e.BLOCK_M) * e.BLOCK_M, torch.arange(e.Lq)[:, None]
            yield "the start is rounded up; begin with the tile that holds the first query that sees a key", rows >= up
            late = (begin + 1) // e.BLOCK_M * e.BLOCK_M
            yield "the loop starts a query too late: begin with the tile that holds first − (Lk − Lq)", rows >= late
    else:  # elsewhere it may look like one of those, and here it shows first
        yield skipped, e.first_key + e.BLOCK_N <= e.first_query + 1
        yield skipped, torch.arange(e.Lk) < e.first_query


def wrong_masks(e: BackwardPass):
    yield "the diagonal is off by one: query i does see key i + Lk − Lq", e.seen_to(e.corner - 1)
    yield "the diagonal is off by one: query i does not see key i + Lk − Lq + 1", e.seen_to(e.corner + 1)
    yield "the causal mask is missing where P is computed again", e.seen_to(e.Lk)
    yield f"the diagonal starts from the top left corner: {RULE}", e.seen_to(0)
    yield f"the causal mask is turned round: {RULE}", ~e.seen_to(e.corner - 1)
    yield f"the causal mask is turned round: {RULE}, and no others", ~e.seen
    yield TURNED_SIGN, e.seen_to(-e.corner)
    yield TURNED_SIGN, e.seen_to(-e.corner) & e.walked(-e.corner)
