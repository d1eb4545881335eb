"""Planted bugs of exercise 2, and right answers written differently."""

from pathlib import Path

from labs_helpers.transformer.lab01.exercises import ex2_gpu_time

BODY = Path(ex2_gpu_time.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
KINDS = '("kernel", "gpu_memcpy", "gpu_memset")'
FIRST, LAST = 'min(e["ts"] for e in timed)', 'max(e["ts"] + e["dur"] for e in timed)'
LAUNCHES = 'sum(e["cat"] == "kernel" for e in work)'
SORTED = 'sorted((e["ts"], e["ts"] + e["dur"]) for e in part)'
ADDED = "end - max(start, reached)"
BUSY, EXPOSED = "busy / whole,", "(busy - covered(others)) / whole"
IS = 'e["cat"] == "kernel"'
TALK = 'covered(e for e in work if e["cat"] == "kernel" and e["name"].startswith("nccl"))'
EACH = """    talk = [e for e in work if e not in others]
    each = [covered([e, *others]) - covered(others) for e in talk]
"""

_BUGS = [
    # launches
    (
        "calls of the runtime",
        [(LAUNCHES, 'sum(e["cat"] == "cuda_runtime" for e in timed)')],
        '"cuda_runtime" event was',
    ),
    (
        "distinct names",
        [(LAUNCHES, 'len({e["name"] for e in work if e["cat"] == "kernel"})')],
        "each name was counted once",
    ),
    ("copies", [(LAUNCHES, "len(work)")], "copies and memsets are not kernels"),
    ("launches on the CPU", [(LAUNCHES, 'sum(e["name"] == "cudaLaunchKernel" for e in timed)')], "counted on the CPU"),
    (
        "ranges",
        [(LAUNCHES, 'sum(e["cat"] in ("kernel", "gpu_user_annotation") for e in timed)')],
        "a range, not a kernel",
    ),
    ("no communication", [(LAUNCHES, 'sum(e["cat"] == "kernel" for e in others)')], "communicate are kernels too"),
    ("operations", [(LAUNCHES, 'sum(e["cat"] == "cpu_op" for e in timed)')], "PyTorch's operations were counted"),
    ("everything", [(LAUNCHES, "len(timed)")], "all events were counted"),
    ("labels", [(' if e["ph"] == "X"', "")], 'only events with "ph" == "X" have a'),
    # busy: the union
    ("added up", [(ADDED, "end - start")], "overlapping work was added up: count it"),
    (
        "added up once each",
        [(ADDED, "end - start"), (SORTED, f"set({SORTED})")],
        "overlapping work was added up: count it",
    ),
    ("nested", [("max(reached, end)", "end")], "keep the later of the two ends"),
    ("not sorted", [(SORTED, SORTED.removeprefix("sorted"))], "the list is unordered: sort the intervals by"),
    ("dur for end", [(SORTED, 'sorted((e["ts"], e["dur"]) for e in part)')], "dur is a length, not an end"),
    (
        "first to last",
        [("busy = covered(work)", 'busy = max(e["ts"] + e["dur"] for e in work) - min(e["ts"] for e in work)')],
        "pauses were",
    ),
    # busy: of what
    ("no copies", [('"gpu_memcpy", ', "")], r"copies \(gpu_memcpy\) are work too"),
    ("no memsets", [(', "gpu_memset"', "")], r"memsets \(gpu_memset\) are work too"),
    ("kernels alone", [(KINDS, '("kernel",)')], "copies and memsets are work too"),
    (
        "ranges",
        [("busy = covered(work)", 'busy = covered(e for e in timed if "gpu" in e["cat"] or e in work)')],
        "a gpu_user_annotation is a range, not work",
    ),
    ("the CPU too", [("busy = covered(work)", "busy = covered(timed)")], "the CPU's events were counted"),
    (
        "operations",
        [("busy = covered(work)", 'busy = covered(e for e in timed if e["cat"] == "cpu_op")')],
        "the CPU's events were",
    ),
    ("no communication", [(BUSY, "covered(others) / whole,")], "kernels that communicate are work too"),
    # busy: the share
    (
        "from the first kernel",
        [(FIRST, 'min(e["ts"] for e in timed if e["cat"] == "kernel" or len(timed) < 3)')],
        "begins with its first event, on the CPU",
    ),
    (
        "the GPU's time",
        [
            ("whole = ", "gpu = [e for e in timed if e['cat'][0] in 'kg'] or timed\n    whole = "),
            (FIRST, FIRST.replace("timed", "gpu")),
            (LAST, LAST.replace("timed", "gpu")),
        ],
        "from the GPU's first work to its last",
    ),
    ("to the last start", [(LAST, 'max(e["ts"] for e in timed)')], "the largest ts is a start"),
    (
        "as listed",
        [(FIRST, 'timed[0]["ts"]'), (LAST, 'timed[-1]["ts"] + timed[-1]["dur"]')],
        "the list is unordered",
    ),
    (
        "the last to start",
        [("whole = ", 'last = max(timed, key=lambda e: e["ts"])\n    whole = '), (LAST, 'last["ts"] + last["dur"]')],
        "that starts last need not end",
    ),
    ("from 0", [(f" - {FIRST}", "")], "begins with its first event, not at 0"),
    (
        "over the sum",
        [(f"{LAST} - {FIRST}", 'sum(e["dur"] for e in timed)')],
        "durations were added up for the trace's time",
    ),
    (
        "operations' time",
        [
            (
                "whole = ",
                'some = [e for e in timed if e["cat"] not in ("cuda_runtime", "user_annotation")]\n    whole = ',
            ),
            (FIRST, FIRST.replace("timed", "some")),
            (LAST, LAST.replace("timed", "some")),
        ],
        "every event counts|not with the GPU's last work",
    ),
    ("idle", [(BUSY, "1 - busy / whole,")], "this is the idle share; busy is the rest"),
    ("µs", [(BUSY, "busy,")], "divide by the trace's time"),
    ("percent", [(BUSY, "100 * busy / whole,")], "return a share from 0 to 1, not a percentage"),
    # exposed
    ("all of communication", [(EXPOSED, f"{TALK} / whole")], "all communication was counted; exposed is"),
    ("hidden", [(EXPOSED, f"{TALK} / whole - {EXPOSED}")], "this is the hidden communication; exposed is"),
    (
        "copies hide nothing",
        [(EXPOSED, f"(covered(e for e in work if {IS}) - covered(e for e in others if {IS})) / whole")],
        "copies and memsets are not communication",
    ),
    (
        "share of communication",
        [(EXPOSED, f"(busy - covered(others)) / ({TALK} or 1)")],
        "return the share of the trace's time, not of",
    ),
    (
        "share of the busy time",
        [(EXPOSED, "(busy - covered(others)) / (busy or 1)")],
        "return the share of the trace's time, not of",
    ),
    (
        "pauses",
        [(EXPOSED, "(1 - covered(others) / whole) * any('nccl' in e['name'] for e in work)")],
        "a pause, in which the GPU does nothing, is",
    ),
    ("nccl anywhere", [('not e["name"].startswith("nccl")', '"nccl" not in e["name"]')], 'begin with "nccl"'),
    ("NCCL", [('startswith("nccl")', 'startswith("NCCL")')], "no communication was found"),
    (
        "each by itself",
        [("    launches =", EACH + "    launches ="), (EXPOSED, "sum(each) / whole")],
        "at the same time were counted twice",
    ),
    (
        "whole kernels",
        [
            ("    launches =", EACH + "    launches ="),
            (EXPOSED, 'sum(e["dur"] for e, o in zip(talk, each) if e["dur"] == o) / whole'),
        ],
        "communication that is partly hidden is",
    ),
    # what was given
    (
        "sorted in place",
        [("timed = [", 'events.sort(key=lambda e: e.get("ts", 0))\n    timed = [')],
        "reordered the list",
    ),
    (
        "an end put in",
        [("busy = covered", '[e.update(end=e["ts"] + e["dur"]) for e in work]\n    busy = covered')],
        "'end' was missing",
    ),
    (
        "kernels and copies apart",
        [("busy = covered(work)", f"busy = sum(covered(e for e in work if e['cat'] == kind) for kind in {KINDS})")],
        "communication: busy(.|\n)*in a union over all streams",
    ),
    (
        "less than nothing",
        [("max(0.0, end - max(start, reached))", "end - max(start, reached)")],
        "an interval inside an earlier one adds 0",
    ),
    (
        "the first of none",
        [("covered(part):\n", "covered(part):\n        part = list(part)\n        part[0]\n")],
        "nothing but communication: IndexError(.|\n)*an empty list has no first",
    ),
    (
        "labels taken out",
        [("timed = [", 'events[:] = [e for e in events if e["ph"] == "X"]\n    timed = [')],
        "added or removed",
    ),
]
BUGS = [("gpu_time", *bug) for bug in _BUGS]

BY_PAUSES = """
    def pauses(part, begin, end):
        total, free = 0, begin
        for e in sorted(part, key=lambda e: e["ts"]):
            if e["ts"] > free:
                total += e["ts"] - free
            free = max(free, e["ts"] + e["dur"])
        return total + max(0, end - free)

    events = [e for e in events if e.get("dur") is not None]
    begin, end = min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
    gpu = [e for e in events if e["cat"] == "kernel" or e["cat"].startswith("gpu_mem")]
    computes = [e for e in gpu if e["name"][:4] != "nccl"]
    idle, without = pauses(gpu, begin, end), pauses(computes, begin, end)
    kernels = [e for e in gpu if e["cat"] == "kernel"]
    return len(kernels), 1 - idle / (end - begin), (without - idle) / (end - begin)
"""
BY_MERGING = """
    def union(spans):
        merged = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        return sum(end - start for start, end in merged)

    launches, gpu, quiet, times = 0, [], [], []
    for event in events:
        if event["ph"] != "X":
            continue
        span = event["ts"], event["ts"] + event["dur"]
        times.extend(span)
        if event["cat"] in {"kernel", "gpu_memcpy", "gpu_memset"}:
            gpu.append(span)
            if not (event["cat"] == "kernel" and event["name"].startswith("nccl")):
                quiet.append(span)
            launches += event["cat"] == "kernel"
    length = max(times) - min(times)
    return launches, union(gpu) / length, union(gpu) / length - union(quiet) / length
"""
BY_COUNTING = """
    import numpy as np

    timed = [e for e in events if e["ph"] == "X"]
    ends = np.unique([t for e in timed for t in (e["ts"], e["ts"] + e["dur"])])
    at, width = ends[:-1], np.diff(ends)
    working, computing = np.zeros(len(at), bool), np.zeros(len(at), bool)
    for e in timed:
        if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            inside = (at >= e["ts"]) & (at < e["ts"] + e["dur"])
            working |= inside
            if not e["name"].startswith("nccl"):
                computing |= inside
    share = lambda where: width[where].sum() / width.sum()
    return sum(e["cat"] == "kernel" for e in timed), share(working), share(working & ~computing)
"""
BY_PANDAS = """
    import pandas

    frame = pandas.DataFrame([e for e in events if e["ph"] == "X"])
    frame["end"] = frame.ts + frame.dur
    gpu = frame[frame.cat.isin(["kernel", "gpu_memcpy", "gpu_memset"])].sort_values("ts")

    def covered(rows):
        reached = rows.end.cummax().shift(fill_value=float("-inf"))
        return (rows.end - rows[["ts"]].assign(reached=reached).max(axis=1)).clip(lower=0).sum()

    talks = (gpu.cat == "kernel") & gpu.name.str.startswith("nccl")
    whole = frame.end.max() - frame.ts.min()
    busy, rest = covered(gpu), covered(gpu[~talks])
    return (frame.cat == "kernel").sum(), busy / whole, (busy - rest) / whole
"""
_DIFFERENT = [
    [(BODY, BY_PAUSES)],
    [(BODY, BY_MERGING)],
    [(BODY, BY_COUNTING)],
    [(BODY, BY_PANDAS)],
    [("timed = [e for e", "timed = [dict(e) for e"), ("busy = covered", "timed.sort(key=str)\n    busy = covered")],
]
DIFFERENT = [("gpu_time", changes) for changes in _DIFFERENT]
