"""Exercise 3 of lab 01: what people do wrong with the GPU's time by operation, and other ways that are right."""

from pathlib import Path

from labs_helpers.transformer.lab01.exercises import ex3_by_operation

BODY = Path(ex3_by_operation.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
KINDS = 'event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")'
ADD = 'us.get(name, 0.0) + event["dur"]'
CALLS, IDS = "len(ids[name])", "ids.setdefault(name, set()).add(number)"
SORTED = "sorted(us, key=us.get, reverse=True)"
OPERATIONS = '[e for e in events if e.get("cat") == "cpu_op"]'
FIND_CALLER = f"""                for e in {OPERATIONS}:
                    if e["args"]["External id"] == number:
                        inner = e
                for e in {OPERATIONS}:
                    end, last = inner["ts"] + inner["dur"], e["ts"] + e["dur"]
                    if e["tid"] == inner["tid"] and e["ts"] <= inner["ts"] and end <= last:
                        inner = e
                number = inner["args"]["External id"]
"""
ONE_PASS = """
    names, us, ids = {}, {}, {}
    for event in events:
        if event.get("cat") == "cpu_op":
            names[event["args"]["External id"]] = event["name"]
        elif event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            number = event["args"].get("External id")
            if number in names:
                name = names[number]
                us[name] = us.get(name, 0.0) + event["dur"]
                ids.setdefault(name, set()).add(number)
    return {name: (len(ids[name]), us[name]) for name in sorted(us, key=us.get, reverse=True)}
"""

_BUGS = [
    # names
    ("the correlation", [('.get("External id")', '.get("correlation")')], '"correlation" is a launch'),
    (
        "the outer operation",
        [("                name = names", FIND_CALLER + "                name = names")],
        "launched it itself, not to those",
    ),
    ("names of kernels", [("name = names[number]", 'name = event["name"]')], "the names are those of the GPU's work"),
    ("by number", [("name = names[number]", "name = number")], "add up the calls of a name"),
    (
        "launches have names",
        [('e.get("cat") == "cpu_op"}', 'e.get("cat") in ("cpu_op", "cuda_runtime") and "External id" in e["args"]}')],
        'launches carry an "External id" too',
    ),
    (
        "ranges have names",
        [('e.get("cat") == "cpu_op"}', 'e.get("cat") in ("cpu_op", "user_annotation")}')],
        "a range is no operation",
    ),
    (
        "all operations",
        [("us, ids = {}, {}", "us, ids = dict.fromkeys(names.values(), 0.0), {n: set() for n in names.values()}")],
        "launched nothing itself is left out",
    ),
    (
        "under None",
        [("if number in names:", "if True:"), ("names[number]", "names.get(number)")],
        "of no operation in the trace is left out",
    ),
    ("no such operation", [("if number in names:", "if True:")], "of no operation in the trace is left out"),
    ("no number", [('.get("External id")', '["External id"]')], 'not every event has an "External id"'),
    ("no copies", [('"gpu_memcpy", ', "")], "copies are the GPU's work too"),
    ("no memsets", [(', "gpu_memset"', "")], "memsets are the GPU's work too"),
    ("kernels alone", [(KINDS, 'event.get("cat") == "kernel"')], "copies and memsets are the GPU's work too"),
    ("one pass", [(BODY, ONE_PASS)], "go over the events twice"),
    ("labels", [('e.get("cat")', 'e["cat"]')], "labels and arrows have none"),
    # calls
    ("kernels for calls", [(IDS, "ids.setdefault(name, []).append(number)")], "a call may launch several"),
    ("all that stand there", [(CALLS, "list(names.values()).count(name)")], "those that launched something"),
    ("one call a name", [(CALLS, "1")], "each name was counted once"),
    ("µs first", [(f"({CALLS}, us[name])", f"(us[name], {CALLS})")], "calls come first"),
    # µs
    (
        "the CPU's time",
        [
            (
                "    return",
                f"    us = {{n: sum(e['dur'] for e in {OPERATIONS} if e['name'] == n) for n in us}}\n    return",
            )
        ],
        "a cpu_op's dur is the CPU's time",
    ),
    (
        "all with that number",
        [(KINDS, 'event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime")')],
        "a launch is the CPU's",
    ),
    ("the last kernel", [(ADD, 'event["dur"]')], "one kernel's time is left"),
    ("the longest kernel", [(ADD, 'max(us.get(name, 0.0), event["dur"])')], "one kernel's time is left"),
    ("a mean", [("us[name]) for", "us[name] / len(ids[name])) for")], "mean of a call"),
    ("ms", [(ADD, 'us.get(name, 0.0) + event["dur"] / 1e3')], "µs are asked for, as the trace has them"),
    ("a share", [("us[name]) for", "us[name] / sum(us.values())) for")], "not a share"),
    # order
    ("not sorted", [(SORTED, "us")], "stands behind"),
    ("the cheapest first", [(", reverse=True", "")], "reverse=True"),
    ("by name", [(SORTED, "sorted(us)")], "in order of their names"),
    ("by mean", [("key=us.get", "key=lambda name: us[name] / len(ids[name])")], "in order of the mean of a call"),
    # what was given
    ("an argument taken out", [('.get("External id")', '.pop("External id", None)')], "'args' was"),
]
BUGS = [("by_operation", *bug) for bug in _BUGS]

FROM_THE_OPERATIONS = """
    work = [e for e in events if e["ph"] == "X" and e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    result = {}
    for operation in events:
        if operation["ph"] == "X" and operation["cat"] == "cpu_op":
            mine = operation["args"]["External id"]
            launched = [e["dur"] for e in work if e["args"].get("External id", None) == mine]
            if launched:
                calls, us = result.get(operation["name"], (0, 0))
                result[operation["name"]] = (calls + 1, us + sum(launched))
    return dict(sorted(result.items(), key=lambda item: item[1][1], reverse=True))
"""
BY_DEFAULTS = """
    from collections import defaultdict

    per_id = defaultdict(float)
    for event in events:
        if event["ph"] == "X" and (event["cat"] == "kernel" or event["cat"].startswith("gpu_mem")):
            per_id[event["args"].get("External id", -1)] += event["dur"]
    table = defaultdict(lambda: [0, 0.0])
    for event in events:
        if event["ph"] == "X" and event["cat"] == "cpu_op" and event["args"]["External id"] in per_id:
            row = table[event["name"]]
            row[0] += 1
            row[1] += per_id[event["args"]["External id"]]
    return {name: table[name] for name in sorted(table, key=lambda name: -table[name][1])}
"""
BY_PANDAS = """
    import pandas

    timed = [e for e in events if e["ph"] == "X" and "External id" in e["args"]]
    rows = [(e["cat"], e["name"], e["dur"], e["args"]["External id"]) for e in timed]
    frame = pandas.DataFrame(rows, columns=["cat", "name", "dur", "id"])
    operations = frame[frame.cat == "cpu_op"][["id", "name"]]
    work = frame[frame.cat.isin(["kernel", "gpu_memcpy", "gpu_memset"])][["id", "dur"]]
    groups = work.merge(operations, on="id").groupby("name")
    table = pandas.DataFrame({"calls": groups.id.nunique(), "us": groups.dur.sum()})
    table = table.sort_values("us", ascending=False)
    return {name: (row.calls, row.us) for name, row in table.iterrows()}
"""
BY_LAUNCHES = """
    launched = {}
    for e in events:
        if e["ph"] == "X" and e["cat"] == "cuda_runtime":
            launched[e["args"]["correlation"]] = e
    found = {}
    for e in events:
        if e["ph"] != "X" or e["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        for operation in events:
            if operation.get("cat") == "cpu_op" and operation["args"]["External id"] == e["args"].get("External id"):
                ids, us = found.setdefault(operation["name"], (set(), []))
                ids.add(operation["ts"])
                us.append(e["dur"])
    table = [(sum(us), name, len(ids)) for name, (ids, us) in found.items()]
    return {name: (calls, us) for us, name, calls in reversed(sorted(table))}
"""
_DIFFERENT = [
    [(BODY, FROM_THE_OPERATIONS)],
    [(BODY, BY_DEFAULTS)],
    [(BODY, BY_PANDAS)],
    [(BODY, BY_LAUNCHES)],
    [(ADD, 'event["dur"] + us.get(name, 0)'), ("number in names", "number is not None and names.get(number)")],
]
DIFFERENT = [("by_operation", changes) for changes in _DIFFERENT]
