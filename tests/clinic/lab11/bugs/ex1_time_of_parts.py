"""Exercise 1 of lab 11: mistakes that its check has to name, and right answers written differently."""

import inspect

from labs_helpers.clinic.lab11.exercises import ex1_time_of_parts

NAME = "time_of_parts"
BODY = inspect.getsource(ex1_time_of_parts).split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
ORDER = '["forward", "backward", "optimizer", "data", "communication"]'
RETURN = "    return ms\n"
UNIONS = """    def joined(spans):
        found = []
        for start, stop in sorted((start, min(stop, length)) for start, stop in spans if start < length):
            if found and start <= found[-1][1]:
                found[-1][1] = max(found[-1][1], stop)
            else:
                found.append([start, stop])
        return found

    def size(spans):
        return sum(stop - start for start, stop in joined(spans))

    get = lambda *parts: [span for part in parts for span in spans.get(part, [])]
    computing = get("forward", "backward", "optimizer")
    ms = {part: size(get(part)) for part in ("forward", "backward", "optimizer")}
    ms["data"] = size(computing + get("data")) - size(computing)
    ms["communication"] = size(computing + get("data", "communication")) - size(computing + get("data"))
    ms["idle"] = length - size(computing + get("data", "communication"))
    return ms
"""
NO_COMMUNICATION_ORDER = UNIONS.replace(
    'size(computing + get("data", "communication")) - size(computing + get("data"))',
    'size(computing + get("communication")) - size(computing)',
    1,
)

BUGS: list = [
    (NAME, "communication before data", [(ORDER, '["forward", "backward", "optimizer", "communication", "data"]')],
     "where data and communication overlap, the moment belongs to data"),
    (NAME, "data first", [(ORDER, '["data", "forward", "backward", "optimizer", "communication"]')],
     "where data overlaps with a computing part"),
    (NAME, "communication first", [(ORDER, '["communication", "forward", "backward", "optimizer", "data"]')],
     "where communication overlaps with a computing part"),
    (NAME, "not cut at the end", [("min(end, length)", "end")], "also counts after the end of the step"),
    (NAME, "spans inside the piece", [("first <= start and stop <= last", "start <= first and last <= stop")],
     "draw one line per part"),
    (NAME, "every part gets the moment",
     [('ms[next(active, "idle")] += stop - start',
       'for part in list(active) or ["idle"]:\n            ms[part] += stop - start')],
     "data also counts while the step computes"),
    (NAME, "no key for a missing part", [("dict.fromkeys([*order, \"idle\"], 0.0)",
     "dict.fromkeys([*spans, \"idle\"], 0.0)")], r"a dict with the keys .*, not forward, backward"),
    (NAME, "no get", [("spans.get(part, [])", "spans[part]")], "a part may be missing in `spans`"),
    (NAME, "no return", [(RETURN, "")], "a return is missing"),
    (NAME, "idle ends with the last span", [("sorted({0.0, length, *ends})", "sorted({0.0, *ends})")],
     "the time after the last span is missing"),
    (NAME, "communication over data in full", [(BODY, NO_COMMUNICATION_ORDER)],
     "communication also counts while data is loaded"),
    (NAME, "nested spans", [(BODY, UNIONS.replace("max(found[-1][1], stop)", "stop"))],
     "joining them must keep the later end"),
    (NAME, "spans in the order of the list", [(BODY, UNIONS.replace("sorted((", "list(("))],
     "spans are joined in the order of the list"),
    (NAME, "the lists change", [(RETURN, "    [part.sort() for part in spans.values()]\n" + RETURN)],
     "must not change `spans`"),
]  # fmt: skip

BY_EVENTS = """    events = []
    for part, own in spans.items():
        for start, stop in own:
            events += [(start, 1, part), (stop, -1, part)]
    ms = {part: 0 for part in ("data", "forward", "backward", "optimizer", "communication", "idle")}
    running, now = dict.fromkeys(ms, 0), 0
    for moment, change, part in sorted([*events, (length, 0, "idle")]):
        moment = min(moment, length)
        who = "idle"
        for one in ("communication", "data", "forward", "backward", "optimizer"):
            if running[one]:
                who = one
        ms[who] += moment - now
        running[part] += change
        now = moment
    return ms
"""
BY_NUMPY = """    import numpy as np

    ends = {0, length} | {end for own in spans.values() for span in own for end in span if end < length}
    ends = np.array(sorted(ends))
    middle, width = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    left, ms = np.ones(len(width), bool), {}
    for part in ("optimizer", "backward", "forward", "data", "communication"):
        on = np.zeros(len(width), bool)
        for start, stop in spans.get(part, ()):
            on |= (start <= middle) & (middle < stop)
        ms[part] = width[on & left].sum()
        left &= ~on
    ms["idle"] = width[left].sum()
    return ms
"""
DIFFERENT: list = [(NAME, [(BODY, UNIONS)]), (NAME, [(BODY, BY_EVENTS)]), (NAME, [(BODY, BY_NUMPY)])]
