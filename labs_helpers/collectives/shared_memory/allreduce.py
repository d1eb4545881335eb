"""All-reduce through memory that the ranks of a node share (segment.py), without any messages.

The time goes into moving cache lines from core to core and, before a line is written again, into taking it back from
every core that has read it. So there are three methods, for three lengths of the vector:

    whole    every rank publishes its vector and, after one barrier, reduces all vectors itself
    slices   every rank publishes its vector, reduces one slice of all vectors, and fetches the other ranks' slices
    halves   by recursive halving and doubling (halves.py), so that few ranks read the same line: for powers of two, and
             not where ranks take turns on a core, since they would wait for each other too often

Long vectors go block by block, so that slots stay in the cache: main memory sees each vector once in and once out.
Operands keep the order of their ranks, so all ranks get the same bits and op need not be commutative.
"""

import math
from collections.abc import Callable

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import find_ufunc, reduce_rows
from labs_helpers.collectives.shared_memory.halves import allreduce_halves
from labs_helpers.collectives.shared_memory.segment import Segment, segment_of

WHOLE_BYTES = 128 * 2**10  # bytes of all ranks' vectors: up to here N times the work costs less than a second barrier
SLICES_BYTES = 32 * 2**10  # up to here two barriers cost less than waiting for 2·log₂N partners


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array."""
    reduce_all(segment_of(comm), source, target, op)


def reduce_all(segment: Segment, source, target, op, number: int | None = None) -> None:
    """Run `allreduce` on a segment. number: of this rank's call (agreement.py). Raises Differs, on all ranks and
    before anything is written to target, if another rank has another number."""
    nbytes = target.nbytes
    if segment.size == 1 or nbytes == 0:
        if number is not None:
            segment.barrier(number)
        target[...] = source
    elif nbytes <= _whole_bytes(segment):
        _allreduce_whole(segment, source, target, op, number)
    elif _by_slices(segment, nbytes):
        _allreduce_slices(segment, source, target, op, number)
    else:
        for part in segment.parts(target):
            allreduce_halves(segment, source[part], target[part], op, number)
            number = None


def _whole_bytes(segment) -> int:
    return WHOLE_BYTES // segment.size


def _by_slices(segment, nbytes: int) -> bool:
    return nbytes <= SLICES_BYTES or segment.crowded or segment.size & (segment.size - 1) > 0


def prepare(segment: Segment, dtype, shape: tuple[int, ...], op, number: int | None) -> Callable:
    """Return a function of (source, target), C-contiguous arrays of `shape`, that repeats `reduce_all` without any
    lookups, which would take most of a short vector's time."""
    count, ufunc = math.prod(shape), find_ufunc(op)
    nbytes = count * dtype.itemsize
    if segment.size == 1 or nbytes == 0 or ufunc is None:
        way = None
    elif nbytes <= _whole_bytes(segment):
        way = _repeat_pair if segment.size == 2 else _repeat_whole
    else:
        way = _repeat_slices if nbytes <= segment.block and _by_slices(segment, nbytes) else None
    if way is not None:
        return way(segment, dtype, shape, ufunc, number)

    def run(source, target) -> None:
        flat = target.reshape(-1)
        reduce_all(segment, flat if source is target else source.reshape(-1), flat, op, number)

    return run


def _repeat_whole(segment, dtype, shape, ufunc, number) -> Callable:
    board, barrier, reduce = segment.board, segment.barrier, ufunc.reduce
    places = [_show_whole(segment, odd, dtype, shape) for odd in (False, True)]

    def run(source, target) -> None:
        board.odd = odd = not board.odd
        own, every = places[odd]
        own[...] = source
        barrier(number)
        reduce(every, 0, dtype, target)

    return run


def _repeat_pair(segment, dtype, shape, ufunc, number) -> Callable:
    """Repeat for two ranks, for which a sum costs less than a reduction of rows."""
    board, barrier = segment.board, segment.barrier
    places = [_show_whole(segment, odd, dtype, shape) for odd in (False, True)]

    def run(source, target) -> None:
        board.odd = odd = not board.odd
        own, every = places[odd]
        own[...] = source
        barrier(number)
        ufunc(every[0], every[1], target)

    return run


def _repeat_slices(segment, dtype, shape, ufunc, number) -> Callable:
    """Repeat for a vector of one block."""
    board, barrier = segment.board, segment.barrier
    places = [show_slices(segment, odd, dtype, (math.prod(shape),)) for odd in (False, True)]

    def run(source, target) -> None:
        board.odd = odd = not board.odd
        own, slices, mine, result, first = places[odd]
        own[...] = source.reshape(-1)
        barrier(number)
        if mine.size:
            reduce_rows(ufunc, slices, mine)
        barrier()
        _fetch(result, target.reshape(-1), first)

    return run


def _allreduce_whole(segment, source, target, op, number) -> None:
    own, every = segment.next_block(_show_whole, target.dtype, target.shape)
    own[...] = source
    segment.barrier(number)
    reduce_rows(op, every, target)


def _show_whole(segment, odd: bool, dtype, shape):
    every = segment.slots(odd, dtype, shape)
    return every[segment.rank, ...], every


def _allreduce_slices(segment, source, target, op, number) -> None:
    """Reduce block by block. The barrier that announces the next block also releases this block's result, so each
    block needs one barrier."""
    before = None
    for part in segment.parts(target):
        goal = target[part]
        own, slices, mine, result, first = segment.next_block(show_slices, goal.dtype, goal.shape)
        own[...] = source[part]
        segment.barrier(number)
        number = None
        if mine.size:
            reduce_rows(op, slices, mine)
        if before is not None:
            _fetch(*before)
        before = result, goal, first
    segment.barrier()
    _fetch(*before)


def show_slices(segment, odd: bool, dtype, shape):
    """Return the own slot, this rank's slice of all slots, its slice of the result, the result, and where the slice
    begins."""
    every, result = segment.slots(odd, dtype, shape), segment.result(odd, dtype, shape)
    first, last = chunk_bounds(shape[0], segment.size)[segment.rank]
    return every[segment.rank], every[:, first:last], result[first:last], result, first


def _fetch(result, goal, first: int) -> None:
    """Fetch the result, starting with this rank's own slice, so that the ranks do not all read the same slice at the
    same time."""
    goal[first:] = result[first:]
    goal[:first] = result[:first]
