"""Lab 08, exercise 7: which communication nothing hides."""

from itertools import pairwise


def exposed(compute, communication):
    """(communicating, exposed) in seconds.

    compute, communication: lists of (start, end) in seconds, in any order; intervals of one list
    may overlap, touch, or lie within each other, and a list may be empty. communicating: for how
    long anything communicates. exposed: for how long something communicates while nothing
    computes. The lists stay as they are.
    """
    # 1. Time that two messages share counts once.
    # 2. Walk through the moments at which something begins or ends: what runs between two of them?
    ### BEGIN SOLUTION
    moments = sorted({t for interval in [*compute, *communication] for t in interval})

    def runs(intervals, start, end):
        return any(a <= start and end <= b for a, b in intervals)

    communicating = alone = 0.0
    for start, end in pairwise(moments):
        if runs(communication, start, end):
            communicating += end - start
            if not runs(compute, start, end):
                alone += end - start
    return communicating, alone
    ### END SOLUTION
