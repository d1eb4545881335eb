"""Lab 08, exercise 7: measure the communication that no computation hides."""

from itertools import pairwise


def exposed(compute, communication):
    """Return (communicating, exposed), both in seconds.

    compute, communication: lists of (start, end) in seconds, in any order; do not change them. The
    intervals of one list may overlap, touch, or contain each other, and a list may be empty.
    communicating: the time during which at least one message runs. exposed: the part of this time
    during which nothing computes.
    """
    # 1. Count the time that two messages share once.
    # 2. Sort the moments at which an interval starts or ends. What runs between two neighbors?
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
