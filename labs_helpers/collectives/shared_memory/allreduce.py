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
from labs_helpers.collectives.shared_memory.board import Differs
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
    elif nbytes <= SLICES_BYTES or segment.crowded or segment.size & (segment.size - 1):
        _allreduce_slices(segment, source, target, op, number)
    else:
        for part in segment.parts(target):
            allreduce_halves(segment, source[part], target[part], op, number)
            number = None


def _whole_bytes(segment) -> int:
    return WHOLE_BYTES // segment.size


def prepare(segment: Segment, dtype, shape: tuple[int, ...], op, number: int) -> Callable:
    """A function of (source, target), C-contiguous arrays of `shape`, that does `reduce_all` again and again with
    nothing left to look up: of a short vector's time that would be the larger part."""
    nbytes = math.prod(shape) * dtype.itemsize
    ufunc = find_ufunc(op)
    if segment.size == 1 or nbytes == 0 or nbytes > _whole_bytes(segment) or ufunc is None:

        def run(source, target) -> None:
            flat = target.reshape(-1)
            reduce_all(segment, flat if source is target else source.reshape(-1), flat, op, number)

        return run
    board, agree, reduce = segment.board, segment.board.agree, ufunc.reduce
    places = [_show_whole(segment, odd, dtype, shape) for odd in (False, True)]

    def run_whole(source, target) -> None:
        board.odd = odd = not board.odd
        own, every = places[odd]
        own[...] = source
        if not agree(number):
            raise Differs
        reduce(every, 0, dtype, target)

    def run_pair(source, target) -> None:
        board.odd = odd = not board.odd
        own, every = places[odd]
        own[...] = source
        if not agree(number):
            raise Differs
        ufunc(every[0], every[1], target)

    return run_pair if segment.size == 2 else run_whole


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
