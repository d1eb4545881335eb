"""Lab 11, exercise 4: the leak in a memory timeline."""


def find_leak(events, steps):
    """Find the lines that leak memory: return a dict from each to the bytes per step that it leaks.

    events: the record of the memory allocator in `steps` training steps, in order of time. Each is
    a tuple ("alloc", step, id, nbytes, place) or ("free", step, id); step counts from 0. `place` is
    the line that allocated the block, such as "train.py:12", and may allocate several blocks in one
    step. A free ends the live block with this id, from the same step or an earlier one; afterwards
    another block may get the id. A step may have no events. `steps` is even and at least 2.
    A place's live memory is the sum of nbytes of its blocks that are not freed yet. Only its value
    at the end of each step counts, after the step's last event. A place leaks if its live memory
    grew in every step of the second half of the run, steps // 2 … steps − 1; "grew" compares the
    end of the step with the end of the step before. What the first half does is irrelevant. The
    bytes per step are the mean growth over the steps of the second half. Do not change `events`.
    """
    # 1. Which block does a free end? Go through the events in order of time.
    # 2. By how many bytes does each place's live memory change in each step, also in a quiet one?
    # 3. Which places grew in every step of the second half?
    ### BEGIN SOLUTION
    live, changes = {}, {}  # id → (nbytes, place); place → bytes per step
    for kind, step, number, *block in events:
        if kind == "alloc":
            live[number] = block
            nbytes, place = block
        else:
            nbytes, place = live.pop(number)
            nbytes = -nbytes
        changes.setdefault(place, [0] * steps)[step] += nbytes
    half = steps // 2
    return {place: sum(of[half:]) / half for place, of in changes.items() if min(of[half:]) > 0}
    ### END SOLUTION
