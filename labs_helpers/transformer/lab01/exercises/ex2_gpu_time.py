"""Lab 01, exercise 2: from a trace, how many kernels ran and how much of the time the GPU worked."""


def gpu_time(events):
    """(launches, busy, exposed) of a trace: a count, and two shares of its time, from 0 to 1.

    events: dicts with "ph", in any order; leave the list as it is. Those with "ph" == "X" took
    time, and have "cat", "name", "ts" (the start) and "dur", both in µs; the others are labels and
    arrows. The GPU's work has the categories "kernel", "gpu_memcpy" and "gpu_memset"; kernels whose
    name begins with "nccl" communicate. All else was on the CPU, or is a range drawn over others.
    The trace's time: from the first event's start to the last one's end, the CPU's too.
    launches: kernels. busy: the share in which the GPU does anything, on any stream.
    exposed: the share in which it communicates and does nothing else.
    """
    # 1. The intervals (start, end) of the GPU's work, and of that without communication.
    # 2. The length of a union of intervals: sort them, add what each reaches beyond the others.
    # 3. busy from the first union; exposed is what the second has less of.
    ### BEGIN SOLUTION

    def covered(part):
        total, reached = 0.0, float("-inf")
        for start, end in sorted((e["ts"], e["ts"] + e["dur"]) for e in part):
            total += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return total

    timed = [e for e in events if e["ph"] == "X"]
    whole = max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)
    work = [e for e in timed if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    others = [e for e in work if e["cat"] != "kernel" or not e["name"].startswith("nccl")]
    busy = covered(work)
    launches = sum(e["cat"] == "kernel" for e in work)
    return launches, busy / whole, (busy - covered(others)) / whole
    ### END SOLUTION
