"""Lab 01, exercise 8 (transfer): find the slow part of a model, and decide whether it works or waits."""


def diagnose(events):
    """Return (parts, slow, why) of a trace: each part's cost, the slowest part, and the reason.

    events: as in exercise 2. A part is an event of category "user_annotation", with a name; parts
    are not nested. A kernel, copy or memset belongs to the part that launched it. Its launch is the
    "cuda_runtime" event with the same e["args"]["correlation"]; the launch must begin on the part's
    e["tid"], at the part's ts or later and before ts + dur. Leave out work that was launched
    outside all parts, or whose launch is not in the trace.
    parts: {name: (launches, µs, span)}, each added up over all occurrences of the name.
    launches: pieces of GPU work; µs: the time in which at least one of them ran; span: from the
    first piece's start to the last one's end. All are 0 if the part launched nothing.
    slow: the name with the largest span.
    why: "waits" if its µs are less than half of its span, otherwise "works".
    """
    # Write the whole function. Where was the CPU when it launched a piece, and on which thread?
    ### BEGIN SOLUTION
    timed = [e for e in events if e["ph"] == "X"]
    launch = {}
    for e in timed:
        if e["cat"] == "cuda_runtime" and "correlation" in e["args"]:
            launch[e["args"]["correlation"]] = e["tid"], e["ts"]
    parts = {}
    for part in timed:
        if part["cat"] != "user_annotation":
            continue
        pieces = []
        for e in timed:
            if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
                tid, at = launch.get(e["args"].get("correlation"), (None, 0))
                if tid == part["tid"] and part["ts"] <= at < part["ts"] + part["dur"]:
                    pieces.append((e["ts"], e["ts"] + e["dur"]))
        us, reached = 0.0, float("-inf")
        for start, end in sorted(pieces):
            us += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        span = reached - min(pieces)[0] if pieces else 0.0
        before = parts.get(part["name"], (0, 0.0, 0.0))
        parts[part["name"]] = before[0] + len(pieces), before[1] + us, before[2] + span
    slow = max(parts, key=lambda name: parts[name][2])
    return parts, slow, "waits" if parts[slow][1] < parts[slow][2] / 2 else "works"
    ### END SOLUTION
