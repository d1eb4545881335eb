"""Lab 11, exercise 3: find the rank that all others wait for."""

from statistics import mean


def find_straggler(begun, finished):
    """Return (rank, waste): the rank that the others wait for, and what that costs; or None.

    begun[rank][step]: when a rank began to wait in the all-reduce of a step. finished[rank][step]:
    when it left this all-reduce. Both are in ms of the rank's own clock. The clocks of two ranks
    differ by an unknown constant, so a moment on one rank cannot be compared with a moment on
    another; durations can. All ranks leave an all-reduce together. There are at least two steps,
    and every rank has as many as the others.
    A rank's wait is the mean of its waits in all steps, the first included. The straggler has the
    shortest wait; of several with the same wait, take the lowest rank. waste: how many ms per step
    the other ranks wait longer than the straggler, the mean over the other ranks.
    Return None if the longest wait exceeds the shortest by at most 10% of the time per step: the
    mean time from one finish to the next. Return None for a single rank, too.
    """
    # 1. Why does the time per step of each rank not show the straggler? What does?
    # 2. How many times from one finish to the next are there in n steps?
    ### BEGIN SOLUTION
    waits = [
        mean(stop - start for start, stop in zip(*times, strict=True))
        for times in zip(begun, finished, strict=True)
    ]
    per_step = (finished[0][-1] - finished[0][0]) / (len(finished[0]) - 1)
    shortest = min(waits)
    if max(waits) - shortest <= 0.1 * per_step:
        return None
    others = len(waits) - 1
    return waits.index(shortest), sum(wait - shortest for wait in waits) / others
    ### END SOLUTION
