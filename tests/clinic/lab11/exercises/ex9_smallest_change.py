"""Lab 11, exercise 9: the transfer exercise's reference, which students do not receive."""

from itertools import combinations


def smallest_change(measure, changes, goal):
    """Return the smallest set of changes with which a step of the job takes at most goal ms.

    changes: a list of the names of possible changes, which may be empty. measure(chosen) takes a
    set of these names and returns the ms per step of the job with these changes, always the same
    for the same set. The empty set is the job as it is. More changes never make the job slower,
    but what one of them gains depends on the others.
    If several smallest sets reach the goal, return the fastest of them; if several are equally
    fast, any of these. Return None if not even all changes together reach the goal.
    A measurement is expensive. Measure no set twice. If all changes together miss the goal, that
    is the only measurement. Otherwise, for an answer of k changes, the limit is the number of sets
    of 0 to k changes, plus one for all changes together. Do not change the list.
    """
    # How large can the smallest set be if each change alone gains nothing?
    ### BEGIN SOLUTION
    everything = measure(set(changes))
    if everything > goal:
        return None
    for size in range(len(changes)):
        ms = {chosen: measure(set(chosen)) for chosen in combinations(changes, size)}
        if min(ms.values()) <= goal:
            return set(min(ms, key=ms.get))
    return set(changes)
    ### END SOLUTION
