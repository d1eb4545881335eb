"""Lab 01, exercise 2: from a trace, count kernels and compute the share of time in which the GPU worked."""


def gpu_time(events):
    """Return (launches, busy, exposed) of a trace: a count, and two shares of its time from 0 to 1.

    events: dicts with "ph", in any order; leave the list as it is. Those with "ph" == "X" took
    time and have the keys "cat", "name", "ts" (the start) and "dur", both in µs; the others are
    labels and arrows. The GPU's work has the categories "kernel", "gpu_memcpy" and "gpu_memset";
    kernels whose name begins with "nccl" communicate. All other events ran on the CPU, or are
    ranges that only mark others.
    The trace's time: from the first event's start to the last one's end, including CPU events.
    launches: the number of kernels. busy: the share in which the GPU works on any stream.
    exposed: the share in which it communicates and does nothing else.
    """
    # 1. The intervals (start, end) of the GPU's work, and of that without communication.
    # 2. The length of a union of intervals: sort them; add the part that no earlier one covers.
    # 3. busy is the first union's share; exposed is the difference between the two.
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
