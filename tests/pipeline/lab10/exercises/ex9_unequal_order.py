"""Lab 10, exercise 9: the transfer exercise's reference, which students do not receive."""


def unequal_order(times, micro_batches, stashes):
    """Return one order per rank, lists of ("F", i), ("I", i) and ("W", i) for each micro-batch i.

    times: per rank, the times (F, I, W) of one micro-batch. Rank r holds stage r. stashes: per
    rank, the most stashes that it may hold, at least as many as it holds in 1F1B. A stash lives
    from the beginning of F to the end of W.
    The simulator runs your orders: each rank works through its list, and waits for the activation
    or the gradient that its next action uses. Messages take no time.
    No step can be shorter than the computations of the slowest rank, micro_batches · (F + I + W).
    1F1B, whose backward passes take I + W, exceeds this bound by some time. Your step may exceed it
    by at most 45% of that time.
    """
    # Which action may each rank start next, and when? Which of these should it start?
    ### BEGIN SOLUTION
    ranks = len(times)
    orders, free = [[] for _ in times], [0.0] * ranks  # free: when each rank ends its last action
    done, ended = [{"I": 0, "F": 0, "W": 0} for _ in times], {}

    def start(rank, kind):
        """Return when the rank can start its next action of this kind, or None if that is unknown."""
        i = done[rank][kind]
        full = kind == "F" and i - done[rank]["W"] == stashes[rank]
        needed = [("I", rank, i)] if kind == "W" else []
        if kind == "F" and rank > 0:
            needed = [("F", rank - 1, i)]
        if kind == "I":
            needed = [("F", rank, i), *([("I", rank + 1, i)] if rank + 1 < ranks else [])]
        if i == micro_batches or full or any(one not in ended for one in needed):
            return None
        return max([free[rank], *(ended[one] for one in needed)])

    while len(ended) < 3 * ranks * micro_batches:
        ready = [(start(r, kind), "IFW".index(kind), r, kind) for r in range(ranks) for kind in "IFW"]
        begin, _, r, kind = min(one for one in ready if one[0] is not None)
        i = done[r][kind]
        orders[r].append((kind, i))
        done[r][kind] += 1
        free[r] = ended[kind, r, i] = begin + times[r]["FIW".index(kind)]
    return orders
    ### END SOLUTION
