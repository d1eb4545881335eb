"""Planted bugs of exercise 8, and right answers written differently."""

from pathlib import Path

from tests.transformer.lab01.exercises import ex8_diagnose

BODY = Path(ex8_diagnose.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
INSIDE = 'part["ts"] <= at < part["ts"] + part["dur"]'
MINE = f'tid == part["tid"] and {INSIDE}'
BEFORE = 'before = parts.get(part["name"], (0, 0.0, 0.0))'
SPAN = "reached - min(pieces)[0] if pieces else 0.0"
KINDS = '("kernel", "gpu_memcpy", "gpu_memset")'
ADDED = "end - max(start, reached)"
KEY = "parts[name][2]"
WAITS = "parts[slow][1] < parts[slow][2] / 2"
COUNT = "before[0] + len(pieces)"
CALLED = 'e["cat"] == "cuda_runtime" and part["ts"] <= e["ts"] < part["ts"] + part["dur"]'
CALLS = f'sum({CALLED} and e["tid"] == part["tid"] for e in timed)'
IN_SHADOW = """
    def in_shadow(part, e):
        shadows = [s for s in timed if s["cat"] == "gpu_user_annotation" and s["args"] == part["args"]]
        return any(s["ts"] <= e["ts"] < s["ts"] + s["dur"] for s in shadows)

"""
LAST = 'last = {e["args"]["correlation"]: e for e in timed if "stream" in e["args"]}'
MEAN = """    names = [e["name"] for e in timed if e["cat"] == "user_annotation"]
    parts = {name: tuple(x / names.count(name) for x in row) for name, row in parts.items()}
"""
TOGETHER = """        mine = every.setdefault(part["name"], [])
        mine += pieces
        span = max(end for _, end in mine) - min(mine)[0] if mine else 0.0
"""

_BUGS = [
    # which part
    (
        "the kernel's own time",
        [("                if tid ==", '                tid, at = part["tid"], e["ts"]\n                if tid ==')],
        "a piece belongs to the part that launched",
    ),
    (
        "the kernel's interval",
        [(MINE, 'e["ts"] < part["ts"] + part["dur"] and part["ts"] < e["ts"] + e["dur"]')],
        "a piece belongs to the part that launched",
    ),
    ("its end too", [(INSIDE, INSIDE.replace("at < part", "at <= part"))], r"a part ends at ts \+ dur"),
    ("not its start", [(INSIDE, INSIDE.replace("<= at", "< at"))], "a part begins at ts"),
    ("no threads", [(MINE, f"tid is not None and {INSIDE}")], "another thread's launches do not belong to"),
    ("the stream for a thread", [("if tid == part", 'if e["tid"] == part')], "no part has any piece"),
    (
        "the range's shadow",
        [(MINE, "in_shadow(part, e)"), ("    launch = {}\n", IN_SHADOW + "    launch = {}\n")],
        "a GPU range does not identify a part's work",
    ),
    (
        "by operations",
        [
            ('"cuda_runtime" and "correlation" in', '"cpu_op" and "External id" in'),
            ('e["args"]["correlation"]]', 'e["args"]["External id"]]'),
            ('.get("correlation")', '.get("External id")'),
        ],
        "not every piece has an operation",
    ),
    (
        "a piece a launch",
        [
            (
                "        pieces = []",
                f"        {LAST}\n        pieces = []",
            ),
            (f"if {MINE}", f'if last[e["args"].get("correlation")] is e and {MINE}'),
        ],
        "one launch may start several pieces",
    ),
    (
        "lost launches",
        [('launch.get(e["args"].get("correlation"), (None, 0))', 'launch[e["args"]["correlation"]]')],
        "whose launch is not in the trace",
    ),
    ("labels", [(' if e["ph"] == "X"', "")], 'only events with "ph" == "X" have a'),
    (
        "no correlation",
        [('e["cat"] == "cuda_runtime" and "correlation" in e["args"]', 'e["cat"] != "kernel"')],
        'not every event has a "correlation"',
    ),
    ("no copies", [('"gpu_memcpy", ', "")], "copies are pieces"),
    ("no memsets", [(', "gpu_memset"', "")], "memsets are pieces"),
    ("kernels alone", [(KINDS, '("kernel",)')], "copies and memsets are pieces"),
    (
        "empty parts left out",
        [(f"        {BEFORE}", f"        if not pieces:\n            continue\n        {BEFORE}")],
        "include parts that launched nothing, with",
    ),
    (
        "operations are parts",
        [('part["cat"] != "user_annotation"', 'part["cat"] not in ("user_annotation", "cpu_op")')],
        "operations are no parts",
    ),
    (
        "in one pass",
        [
            (
                """            launch[e["args"]["correlation"]] = e["tid"], e["ts"]\n""",
                """            launch[e["args"]["correlation"]] = e["tid"], e["ts"]\n"""
                """        if "stream" in e["args"] and e["args"].get("correlation") not in launch:\n"""
                """            early.append(e)\n""",
            ),
            ("    launch = {}\n", "    launch, early = {}, []\n"),
            (f"if {MINE}", f"if e not in early and {MINE}"),
        ],
        "the list is unordered: a launch may come",
    ),
    (
        "launches of kernels",
        [('e["cat"] == "cuda_runtime" and', 'e["name"] == "cudaLaunchKernel" and')],
        "by other cuda_runtime events than cudaLaunchKernel",
    ),
    (
        "launches by name",
        [('e["cat"] == "cuda_runtime" and', 'e["cat"] == "cuda_runtime" and "Launch" in e["name"] and')],
        "by other cuda_runtime events than cudaLaunchKernel",
    ),
    (
        "ranges of both kinds",
        [('part["cat"] != "user_annotation"', '"user_annotation" not in part["cat"]')],
        "a gpu_user_annotation marks the GPU's time",
    ),
    (
        "ranges over the GPU",
        [
            ('part["cat"] != "user_annotation"', 'part["cat"] != "gpu_user_annotation"'),
            (f"if {MINE}", 'if part["ts"] <= e["ts"] < part["ts"] + part["dur"]'),
        ],
        "a gpu_user_annotation marks the GPU's time",
    ),
    # launches, µs, span
    ("overwritten", [(BEFORE, "before = 0, 0.0, 0.0")], "a part may occur again: add to its totals"),
    (
        "the first time alone",
        [(BEFORE, f'if part["name"] in parts:\n            continue\n        {BEFORE}')],
        "a part may occur again: add to its totals",
    ),
    (
        "mean",
        [("    slow =", MEAN + "    slow =")],
        "not the mean",
    ),
    ("calls of the runtime", [(COUNT, f"before[0] + {CALLS}")], "count pieces of GPU work as launches: some"),
    ("added up", [(ADDED, "end - start")], "were added up: µs is the length of their union"),
    ("with pauses", [("before[1] + us", "before[1] + span")], "pauses between pieces are not work: µs is"),
    ("the CPU's µs", [("before[1] + us", 'before[1] + part["dur"]')], "a part's dur is CPU time; return GPU time"),
    ("since the launch", [('((e["ts"], e["ts"]', '((at, e["ts"]')], "begins with its own start"),
    ("ms", [("before[1] + us", "before[1] + us / 1e3")], "return µs, the trace's unit"),
    (
        "the whole trace",
        [("before[2] + span", 'max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)')],
        "not the whole trace's",
    ),
    ("the CPU's span", [("before[2] + span", 'before[2] + part["dur"]')], "span is on the GPU"),
    (
        "from the launch",
        [(SPAN, 'reached - part["ts"] if pieces else 0.0')],
        "span begins when the first piece starts on",
    ),
    ("without pauses", [("before[2] + span", "before[2] + us")], "the pauses between the pieces belong to the span"),
    (
        "the last to start",
        [(SPAN, "sorted(pieces)[-1][1] - min(pieces)[0] if pieces else 0.0")],
        "the piece that starts last, or is listed",
    ),
    (
        "as listed",
        [(SPAN, "pieces[-1][1] - pieces[0][0] if pieces else 0.0")],
        "the piece that starts last, or is listed",
    ),
    ("to the last start", [(SPAN, "max(pieces)[0] - min(pieces)[0] if pieces else 0.0")], "the largest ts is a start"),
    (
        "all times together",
        [
            ("    parts = {}", "    parts, every = {}, {}"),
            (f"        span = {SPAN}\n", TOGETHER),
            ("before[2] + span", "span"),
        ],
        "the time between two occurrences of a part",
    ),
    # slow, why
    ("slow by µs", [(KEY, "parts[name][1]")], "you chose the largest µs; waits count too"),
    ("slow by launches", [(KEY, "parts[name][0]")], "you chose the part with the most launches"),
    ("slow by waiting", [(KEY, "parts[name][2] - parts[name][1]")], "you chose the part that waits longest; slow"),
    ("the fastest", [("slow = max", "slow = min")], "you chose the smallest; slow is the part"),
    ("the longest name", [("max(parts, key=lambda name: parts[name][2])", "max(parts)")], "the names were compared"),
    ("upside down", [(WAITS, WAITS.replace("<", ">"))], "it waits if its µs are less than half of its"),
    ("half", [(WAITS, WAITS.replace("<", "<="))], "exactly half is not less"),
    ("any pause", [(WAITS, "parts[slow][1] < parts[slow][2]")], "it waits only if its µs are less than half"),
    (
        "any part",
        [(WAITS, "any(us < span / 2 for _, us, span in parts.values())")],
        "the question is about the part with the",
    ),
    ("other words", [('"waits" if', '"waiting" if')], 'return "waits" or "works"'),
    (
        "where the launch ended",
        [('e["tid"], e["ts"]\n', 'e["tid"], e["ts"] + e["dur"]\n')],
        "a piece belongs to the part in which its",
    ),
    # what was given
    (
        "parts taken out",
        [
            (
                "    parts = {}",
                '    events[:] = [e for e in events if e.get("cat") != "user_annotation"]\n    parts = {}',
            )
        ],
        "added or removed",
    ),
]
BUGS = [("diagnose", *bug) for bug in _BUGS]

FROM_THE_PIECES = """
    from collections import defaultdict

    timed = [e for e in events if e["ph"] == "X"]
    ranges = [e for e in timed if e["cat"] == "user_annotation"]
    launched = {e["args"].get("correlation"): e for e in timed if e["cat"] == "cuda_runtime"}
    pieces = defaultdict(list)
    for e in sorted(timed, key=lambda e: e["ts"]):
        if e["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        start = launched.get(e["args"].get("correlation"))
        if start is None:
            continue
        for i, part in enumerate(ranges):
            if part["tid"] == start["tid"] and part["ts"] <= start["ts"] < part["ts"] + part["dur"]:
                pieces[i].append(e)
    parts = {}
    for i, part in enumerate(ranges):
        busy, first, last = 0.0, None, None
        for e in pieces[i]:
            end = e["ts"] + e["dur"]
            if first is None:
                first, last, busy = e["ts"], end, e["dur"]
            elif end > last:
                busy += end - max(e["ts"], last)
                last = end
        row = parts.setdefault(part["name"], [0, 0.0, 0.0])
        row[0] += len(pieces[i])
        row[1] += busy
        row[2] += last - first if pieces[i] else 0
    slow = sorted(parts, key=lambda name: parts[name][2])[-1]
    return parts, slow, "works" if parts[slow][1] >= 0.5 * parts[slow][2] else "waits"
"""
BY_NUMPY = """
    import numpy as np

    timed = [e for e in events if "dur" in e]
    calls = [e for e in timed if e["cat"] == "cuda_runtime"]
    work = [e for e in timed if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    numbers = {e["args"]["correlation"]: (e["tid"], e["ts"]) for e in calls}
    origin = np.array([numbers.get(e["args"]["correlation"], (-1, np.nan)) for e in work]).reshape(-1, 2)
    spans = np.array([(e["ts"], e["ts"] + e["dur"]) for e in work]).reshape(-1, 2)
    parts = {}
    for part in timed:
        if part["cat"] == "user_annotation":
            inside = (origin[:, 0] == part["tid"]) & (origin[:, 1] >= part["ts"])
            mine = spans[inside & (origin[:, 1] < part["ts"] + part["dur"])]
            at = np.unique(mine)
            lengths, middles = np.diff(at), (at[1:] + at[:-1]) / 2
            runs = [((mine[:, 0] < m) & (m < mine[:, 1])).any() for m in middles]
            row = len(mine), lengths[np.array(runs, bool)].sum(), np.ptp(at) if len(at) else 0.0
            parts[part["name"]] = tuple(np.add(parts.get(part["name"], 0), row))
    slow = max(parts, key=lambda name: parts[name][2])
    return parts, slow, "waits" if 2 * parts[slow][1] < parts[slow][2] else "works"
"""
BY_PANDAS = """
    import pandas

    frame = pandas.DataFrame([{**e, **e["args"]} for e in events if e["ph"] == "X"])
    frame["end"] = frame.ts + frame.dur
    work = frame[frame.cat.isin(["kernel", "gpu_memcpy", "gpu_memset"])]
    calls = frame[frame.cat == "cuda_runtime"][["correlation", "tid", "ts"]]
    joined = work.merge(calls, on="correlation", suffixes=("", "_launch"))
    totals = {}
    for part in frame[frame.cat == "user_annotation"].itertuples():
        at = joined.ts_launch
        mine = joined[(joined.tid_launch == part.tid) & (at >= part.ts) & (at < part.end)].sort_values("ts")
        launches, us, span = totals.get(part.name, (0, 0.0, 0.0))
        if len(mine):
            reached = mine.end.cummax().shift().fillna(-1.0)
            us += (mine.end - mine.ts.where(mine.ts > reached, reached)).clip(lower=0).sum()
            span += mine.end.max() - mine.ts.min()
        totals[part.name] = launches + len(mine), us, span
    slow = pandas.DataFrame(totals).T[2].idxmax()
    return totals, slow, "waits" if totals[slow][1] / totals[slow][2] < 0.5 else "works"
"""
BY_SWEEPING = """
    occurrences, open_now, starts = [], {}, {}
    marks = []
    for e in events:
        if e["ph"] == "X" and e["cat"] == "user_annotation":
            marks += [(e["ts"], 1, e), (e["ts"] + e["dur"], 0, e)]
        elif e["ph"] == "X" and e["cat"] == "cuda_runtime":
            marks.append((e["ts"], 2, e))
    for _, kind, e in sorted(marks, key=lambda mark: mark[:2]):
        if kind == 1:
            open_now[e["tid"]] = len(occurrences)
            occurrences.append((e["name"], []))
        elif kind == 0:
            open_now.pop(e["tid"], None)
        elif e["tid"] in open_now:
            starts[e["args"]["correlation"]] = open_now[e["tid"]]
    for e in events:
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"]["correlation"] in starts:
            occurrences[starts[e["args"]["correlation"]]][1].append([e["ts"], e["ts"] + e["dur"]])
    parts = {name: (0, 0, 0) for name, _ in occurrences}
    for name, pieces in occurrences:
        merged = []
        for start, end in sorted(pieces):
            if merged and merged[-1][1] >= start:
                merged[-1][1] = max(end, merged[-1][1])
            else:
                merged.append([start, end])
        launches, us, span = parts[name]
        us += sum(end - start for start, end in merged)
        parts[name] = launches + len(pieces), us, span + (merged[-1][1] - merged[0][0] if merged else 0)
    slow = max(parts.items(), key=lambda item: item[1][2])[0]
    return parts, slow, ("waits", "works")[parts[slow][1] * 2 >= parts[slow][2]]
"""
_DIFFERENT = [
    [(BODY, FROM_THE_PIECES)],
    [(BODY, BY_NUMPY)],
    [(BODY, BY_PANDAS)],
    [(BODY, BY_SWEEPING)],
    [("launch[e[", "launch[0, e["), ("launch.get(e[", "launch.get((0, e["), ('"), (None, 0))', '")), (None, 0))')],
]
DIFFERENT = [("diagnose", changes) for changes in _DIFFERENT]
