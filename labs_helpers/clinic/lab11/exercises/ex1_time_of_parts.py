"""Lab 11, exercise 1: divide the time of a training step among its parts."""

from itertools import pairwise


def time_of_parts(spans, length):
    """Return a dict with the ms that a step spends in each of its five parts, and in "idle".

    spans: part → a list of (start, stop) in ms from the start of the step, 0 ≤ start ≤ stop, not
    always whole numbers. The parts are "data", "forward", "backward", "optimizer" and
    "communication"; some may be missing, and get 0 ms. The spans of a part are in any order, and
    may overlap one another. length: the ms of the step. Only what lies inside the step counts: a
    span may end after it, or even begin after it.
    Each moment of the step counts once. Where several parts take place, it belongs to the first of
    these: a part that computes (forward, backward or optimizer, of which two never overlap), data,
    communication. So communication counts only where it is exposed. A moment without any part is
    idle. The six numbers add up to length. Do not change spans.
    """
    # 1. At which moments can the step pass from one part to another?
    # 2. Which parts take place between two such moments, and which of them gets the time?
    ### BEGIN SOLUTION
    order = ["forward", "backward", "optimizer", "data", "communication"]
    ms = dict.fromkeys([*order, "idle"], 0.0)
    ends = (min(end, length) for part in spans.values() for span in part for end in span)
    for start, stop in pairwise(sorted({0.0, length, *ends})):
        active = (
            part
            for part in order
            if any(first <= start and stop <= last for first, last in spans.get(part, []))
        )
        ms[next(active, "idle")] += stop - start
    return ms
    ### END SOLUTION
