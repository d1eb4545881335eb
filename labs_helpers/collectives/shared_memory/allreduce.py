"""All-reduce through memory that the ranks of a node share (segment.py): no messages at all.

What costs time is the moving of cache lines from core to core, and before a line is written again, taking it back
from every core that has read it. So there are three ways, for three lengths of the vector:

    whole    everybody shows its vector and, after one barrier, reduces all of them itself
    slices   everybody shows its vector, reduces a slice of all of them, and fetches the slices of the others
    halves   by recursive halving and doubling (shared_halves.py), so that few read the same line: for powers of
             two, and not where ranks take turns on a core, for whom it is too many meetings

Long vectors go block by block, so that slots stay in the cache: main memory sees each vector once in and once out.
Operands keep their ranks' order, so that all ranks get the same bits and op need not be commutative.
"""

import math
from collections.abc import Callable

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import find_ufunc, reduce_rows
from labs_helpers.collectives.shared_memory.halves import allreduce_halves
from labs_helpers.collectives.shared_memory.segment import Segment, segment_of

WHOLE_BYTES = 128 * 2**10  # of all ranks' vectors: up to here N times the work costs less than a second barrier
SLICES_BYTES = 32 * 2**10  # up to here two barriers cost less than 2·log₂N meetings


def allreduce(comm, source, target, op) -> None:
    """source: (n,), target: (n,) of the same dtype; the two may be one array."""
    reduce_all(segment_of(comm), source, target, op)


def reduce_all(segment: Segment, source, target, op, number: int | None = None) -> None:
    """`allreduce` on a segment. number: of this rank's call (agreement.py). Raises Differs, on all ranks and before
    anything is written to target, if another rank has another number."""
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
    """A function of (source, target), C-contiguous arrays of `shape`, that does `reduce_all` again and again with
    nothing left to look up: of a short vector's time that would be the larger part."""
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
    """For two ranks a sum costs less than a reduction of rows."""
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
    """Of a vector that is one block."""
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
    """A block's result is fetched after the barrier that also announces the next block: one barrier a block."""
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
    """The own slot, this rank's slice of all slots, of the result, the result, and where the slice begins."""
    every, result = segment.slots(odd, dtype, shape), segment.result(odd, dtype, shape)
    first, last = chunk_bounds(shape[0], segment.size)[segment.rank]
    return every[segment.rank], every[:, first:last], result[first:last], result, first


def _fetch(result, goal, first: int) -> None:
    """From this rank's own slice on, so that not all read the same rank's slice at once."""
    goal[first:] = result[first:]
    goal[:first] = result[:first]
