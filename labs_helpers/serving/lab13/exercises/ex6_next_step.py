"""Lab 13, exercise 6: one step of in-flight batching, or of static batching."""


def next_step(running, waiting, slots, capacity, static=False):
    """Return (running, waiting) after one decoding step; the arguments stay as they are.

    Both are lists of requests (name, positions, left), oldest first. positions: how much of the
    cache the request reserves. left: the tokens that it still has to generate; 0 in `running` if
    it generated its last token in the step before.
    At most `slots` requests run at a time, and together they reserve at most `capacity`
    positions. Requests join in the order in which they wait: if the oldest does not fit, no
    other one joins. static: requests join only if nobody runs, that is, when the whole previous
    batch has ended.
    """
    # 1. Requests with nothing left leave, and give back their slot and positions.
    # 2. Waiting requests join at the end of `running`, while there is room.
    # 3. Each running request generates a token.
    ### BEGIN SOLUTION
    running, waiting = [request for request in running if request[2] > 0], list(waiting)
    if not (static and running):
        used = sum(positions for _, positions, _ in running)
        while waiting and len(running) < slots and used + waiting[0][1] <= capacity:
            used += waiting[0][1]
            running.append(waiting.pop(0))
    return [(name, positions, left - 1) for name, positions, left in running], waiting
    ### END SOLUTION
