"""Exercise 4 of lab 11: mistakes that its check has to name, and right answers written differently."""

NAME = "find_leak"
RETURN = "    return {place: sum(of[half:]) / half for place, of in changes.items() if min(of[half:]) > 0}\n"
FREE = "            nbytes, place = live.pop(number)\n"
BODY = """    live, changes = {}, {}  # id → (nbytes, place); place → bytes per step
    for kind, step, number, *block in events:
        if kind == "alloc":
            live[number] = block
            nbytes, place = block
        else:
            nbytes, place = live.pop(number)
            nbytes = -nbytes
        changes.setdefault(place, [0] * steps)[step] += nbytes
    half = steps // 2
"""

BUGS: list = [
    (NAME, "frees are skipped", [(FREE, "            continue\n")], "allocations are counted and frees are not"),
    (
        NAME,
        "one table of ids",
        [
            ("    for kind, step", "    table = {e[2]: e[3:] for e in events if e[0] == 'alloc'}\n    for kind, step"),
            ("live.pop(number)", "table[number]"),
        ],
        "an id has one block for the whole run, the last",
    ),
    (NAME, "the first block of an id stays", [("live[number] = block", "live.setdefault(number, block)"),
                                              ("live.pop(number)", "live[number]")],
     "an id has one block for the whole run, the first"),
    (NAME, "the whole run", [("min(of[half:]) > 0", "min(of) > 0")], "in every step of the whole run"),
    (NAME, "may stay the same", [("min(of[half:]) > 0", "min(of[half:]) >= 0 < sum(of[half:])")], "may stay the same"),
    (NAME, "caches are there", [("min(of[half:]) > 0", "min(of[half:]) >= 0")], "throughout the second half"),
    (NAME, "only the ends", [("min(of[half:]) > 0", "sum(of[half:]) > 0")], "compared with the middle alone"),
    (NAME, "all steps", [("sum(of[half:]) / half", "sum(of[half:]) / steps")], "divided by all steps"),
    (NAME, "the whole growth", [("sum(of[half:]) / half", "sum(of) / steps")], "mean over all steps"),
    (NAME, "not divided", [("sum(of[half:]) / half", "sum(of[half:])")], "not divided by its steps"),
    (NAME, "one difference less", [("sum(of[half:]) / half", "sum(of[half + 1 :]) / half")],
     "the first step of the second half is left out"),
    (NAME, "a mean of fewer steps", [("sum(of[half:]) / half", "sum(of[half + 1 :]) / (half - 1)")],
     "of two steps the second half is one"),
    (NAME, "rounded", [("sum(of[half:]) / half", "sum(of[half:]) // half")], "the mean is rounded down"),
    (NAME, "five entries", [("kind, step, number, *block in", "kind, step, number, nbytes, place in"),
                            ("= block\n            nbytes, place = block", "= nbytes, place")],
     "a free has three entries and an alloc five"),
    (NAME, "the bytes of a free", [("*block in events:", "*block in events:\n        (number, *block)[2]")],
     "a free has three entries and an alloc five"),
    (NAME, "a list", [(RETURN, RETURN.replace("{place: sum(of[half:]) / half", "[place").replace("> 0}", "> 0]"))],
     "instead of a dict from each"),
    (NAME, "the differences", [("sum(of[half:]) / half", "of[half:]")], "instead of a number"),
    (NAME, "popped events", [("    half = ", "    events.pop()\n    half = ")], "must not change its arguments"),
]  # fmt: skip
DIFFERENT: list = [
    (
        NAME,
        [
            (
                BODY + RETURN,
                """    places = [event[4] for event in events if event[0] == "alloc"]
    ends = {place: np.zeros(steps + 1) for place in places}
    owner = {}
    for event in events:
        if event[0] == "alloc":
            owner[event[2]] = event[3], event[4]
            ends[event[4]][event[1] + 1 :] += event[3]
        else:
            nbytes, place = owner[event[2]]
            ends[place][event[1] + 1 :] -= nbytes
    growth = {place: np.diff(of)[steps // 2 :] for place, of in ends.items()}
    return {place: of.mean() for place, of in growth.items() if (of > 0).all()}
""",
            ),
            ("def find_leak", "import numpy as np\n\n\ndef find_leak"),
        ],
    ),
    (
        NAME,
        [
            (
                BODY + RETURN,
                """    snapshots, live, i = [], {}, 0
    for step in range(steps):
        while i < len(events) and events[i][1] == step:
            if events[i][0] == "alloc":
                live[events[i][2]] = events[i][3:]
            else:
                del live[events[i][2]]
            i += 1
        snapshots.append(Counter())
        for nbytes, place in live.values():
            snapshots[-1][place] += nbytes
    last = snapshots[steps // 2 - 1 :]
    grown = {place for place in last[-1] if all(a[place] < b[place] for a, b in itertools.pairwise(last))}
    return {place: Fraction(last[-1][place] - last[0][place], steps // 2) for place in grown}
""",
            ),
            (
                "def find_leak",
                "import itertools\nfrom collections import Counter\nfrom fractions import Fraction\n\n\ndef find_leak",
            ),
        ],
    ),
]
