"""Check exercise 5 of lab 06: which rank gets which block, in how many messages and steps."""

from itertools import product

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.on_ranks import (
    called,
    counted,
    left,
    on_ranks,
    on_real_ranks,
    sent_by_each,
    unused,
)
from labs_helpers.collectives.lab06.checks.vectors import expect_results, expect_unchanged, unwritten
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.holdings import compared
from labs_helpers.course.verdict.picture import Picture


@exercise("06/5", "all-to-all", points=10, minutes=15, reference=exercises.pairwise_alltoall)
def pairwise_alltoall(student):
    for size, length in ((4, 2), (2, 3), (3, 2), (5, 3), (7, 1), (1, 4), (3, 0)):
        case = f"{counted(size, 'rank')}, blocks of {length}"
        own = _send_and_recv(size, length)
        run = on_ranks(case, student, called, own)
        expect_unchanged(case, [send for send, _ in own], [send for send, _ in _send_and_recv(size, length)])
        _expect_exchanged(case, own, size, length, run, unused(student, run))
        _expect_pairwise(case, run, 8 * length)
        yield f"{case}: {sent_by_each(run)}"
    case, own = "3 ranks, int64 beyond 2**53", _whole_numbers(3, 2)
    on_ranks(case, student, called, own)
    _expect_whole_numbers(case, own)
    yield case
    case = "the same function on 3 real ranks"
    _expect_exchanged(case, on_real_ranks(case, student, left, _send_and_recv(3, 100)), 3, 100)
    yield case


def _blocks(size: int, length: int) -> np.ndarray:
    """Return (rank, block, element): 100·rank + block, with the element's index after the decimal point."""
    rank, block, place = np.ogrid[:size, :size, :length]
    return 100 * rank + block + place / 1024


def _send_and_recv(size: int, length: int) -> list[tuple]:
    return [(blocks.ravel(), unwritten(size * length)) for blocks in _blocks(size, length)]


def _whole_numbers(size: int, length: int) -> list[tuple]:
    """Return each rank's send and recv of integers that float64 would round."""
    count = size * length
    return [(2**60 + count * rank + np.arange(count), unwritten(count, np.int64)) for rank in range(size)]


def _expect_whole_numbers(case: str, own: list[tuple]) -> None:
    sends, recvs = map(np.array, zip(*own, strict=True))
    expected = sends.reshape(len(own), len(own), -1).swapaxes(0, 1).reshape(recvs.shape)
    rounded = "an intermediate buffer is float64, which rounds large integers: np.empty_like(…), or dtype="
    expect_results(case, recvs, expected, [(rounded, expected.astype(float).astype(np.int64))])


def _expect_exchanged(case: str, left, size: int, length: int, run=None, nothing: str = "") -> None:
    """Raise Wrong unless the blocks were exchanged. left: (send, recv) as each rank left them. run: of practice
    ranks. nothing: why recv may be unchanged."""
    found = np.array([recv for _, recv in left]).reshape(size, size, length)
    wrong = np.argwhere(found != _blocks(size, length).swapaxes(0, 1))
    if wrong.size:
        rank, block, element = wrong[0]
        value = found[rank, block, element]
        source, of = divmod(0 if np.isnan(value) else int(value), 100)
        is_of = f"rank {source}'s block {of}, element {value % 1 * 1024:g}"
        raise Wrong(
            case,
            "what was never written" if np.isnan(value) else is_of,
            f"rank {block}'s block {rank}, element {element}",
            f"block {block} of rank {rank}, element {element}",
            _to_one_alone(run)
            or likely(causes(size, length, nothing), lambda other: np.array_equal(found, other, equal_nan=True)),
            "write down, for each step and rank, which block leaves and where the one that comes is put.",
            _exchanged(found),
        )


def _exchanged(found: np.ndarray) -> Picture | None:
    """Whose blocks each rank has. found: (rank, block, element)."""
    right = _blocks(*found.shape[1:]).swapaxes(0, 1)
    mine, wanted = ({(rank,): one for rank, one in enumerate(ranks)} for ranks in (found, right))
    return compared("rank {0}", mine, wanted, list(wanted), lambda path, a, b: a == b)


def _to_one_alone(run) -> str:
    """Return the cause if each rank sends all its messages to one other rank; or ''."""
    if run is None or run.size == 2 or len({(m.source, m.dest) for m in run.messages}) != run.size:
        return ""
    return "every step sends to the same rank; in step s the partner is s further on, and a block goes straight there"


def causes(size: int, length: int, nothing: str):
    """Return cause → (rank, block, element) of all ranks' recvs. nothing: why recv may be unchanged."""
    blocks, exchanged, ranks = _blocks(size, length), _blocks(size, length).swapaxes(0, 1), np.arange(size)
    columns = blocks.reshape(size, length, size).transpose(2, 0, 1)
    is_row = "block j is elements j·length to (j + 1)·length − 1, row j of reshape(size, -1)"
    yield f"the blocks are columns: {is_row}", columns
    yield f"the blocks are columns: {is_row}", columns.swapaxes(1, 2).reshape(size, size, length)
    copied = "recv is empty: receive into recv itself, or into a view of it"
    yield nothing or copied, np.full_like(blocks, np.nan)
    for block, place in product(("dest", "source", "rank", "step"), repeat=2):
        said = f"the wrong block is sent, blocks[{block}]: block `dest` is for rank dest" * (block != "dest")
        put = f"the block arrives in the wrong place, number `{place}`: what comes from rank i is block i of recv"
        if sentence := "; ".join(filter(None, (said, put * (place != "source")))):
            yield sentence, _in_steps(blocks, block, place)
    for place in (0, -1):
        own = exchanged.copy()
        own[ranks, ranks] = np.nan
        own[ranks, place] = exchanged[ranks, ranks]  # before the messages, of which one comes to the same place
        own[ranks != place % size, place] = exchanged[ranks != place % size, place]
        yield "the rank's own block is stored in the wrong place: it is block `rank` of recv", own
    for away, cause in (
        (0, "the rank's own block is missing; it needs no message, but it has to be copied"),
        (1, "one step is missing"),
        (-1, "one step is missing"),
    ):
        without = exchanged.copy()
        without[ranks, (ranks + away) % size] = np.nan
        yield cause, without


def _in_steps(blocks, block: str, place: str) -> np.ndarray:
    """Return all ranks' recvs if each step sends block `block` of send and stores the arriving one as block `place`
    of recv."""
    size, found = len(blocks), np.full_like(blocks, np.nan)
    for rank in range(size):
        found[rank, rank] = blocks[rank, rank]
        for step in range(1, size):
            source = (rank - step) % size
            of_sender = {"dest": rank, "source": (source - step) % size, "rank": source, "step": step}
            here = {"dest": (rank + step) % size, "source": source, "rank": rank, "step": step}
            found[rank, here[place]] = blocks[source, of_sender[block]]
    return found


def _expect_pairwise(case: str, run, nbytes: int) -> None:
    """Raise Wrong unless each rank sends a block of `nbytes` to each other rank, and no two ranks send to one at the
    same time."""
    size = run.size
    if any(m.dest == m.source for m in run.messages):
        itself = "step 0 is the rank itself: its own block is copied, and the steps go from 1 to size − 1"
        raise Wrong(case, "a rank sends itself a message", cause=itself)
    for rank in range(size):
        sent = [m.nbytes for m in run.messages if m.source == rank]
        if sent != [nbytes] * (size - 1):
            found = f"rank {rank} sends {counted(len(sent), 'message')} of {', '.join(map(str, sent))} bytes"
            cause = "all blocks are sent to all ranks" if set(sent) == {size * nbytes} else ""
            roots = [root for root in range(size) if all(root in (m.source, m.dest) for m in run.messages)]
            if size > 2 and roots:
                cause = "everything goes through one rank; each block can go straight to its own rank"
            raise Wrong(case, f"{found}; a block for each other rank makes {size - 1} of {nbytes}", cause=cause)
    # In pairs i + j = step a rank that meets itself rests; rank ^ step takes up to 2·(size − 1) steps where partners
    # are absent; and whoever posts all receives at once leaves the order to MPI.
    enough = size if _queue(run) else max(size, 2 * (size - 1))
    if run.steps > enough and run.requested < len(run.messages):
        found = f"it takes {run.steps} steps, {size - 1} are enough: a rank cannot receive two messages at a time"
        queue = "all ranks send to rank 0 first, then to rank 1, and queue up there; each rank has to start elsewhere"
        raise Wrong(case, found, cause=queue if _queue(run) else "")


def _queue(run) -> bool:
    """Return True if all ranks send to rank 0 first."""
    return {next(m.dest for m in run.messages if m.source == rank) for rank in range(1, run.size)} == {0}
