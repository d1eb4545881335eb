"""Exercise 7 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "exposed"
BODY = """    moments = sorted({t for interval in [*compute, *communication] for t in interval})

    def runs(intervals, start, end):
        return any(a <= start and end <= b for a, b in intervals)

    communicating = alone = 0.0
    for start, end in pairwise(moments):
        if runs(communication, start, end):
            communicating += end - start
            if not runs(compute, start, end):
                alone += end - start
    return communicating, alone
"""
MERGE = """    def merge(intervals):
        union = []
        for a, b in sorted(intervals):
            if union and a <= union[-1][1]:
                union[-1] = (union[-1][0], max(b, union[-1][1]))
            else:
                union.append((a, b))
        return union

    def length(intervals):
        return sum(b - a for a, b in intervals)

    def overlap(some, others):
        return sum(max(0.0, min(b, d) - max(a, c)) for a, b in some for c, d in others)

"""
RIGHT = (
    "    compute, communication = merge(compute), merge(communication)\n    total = "
    "length(communication)\n    return total, total - overlap(communication, compute)\n"
)


def other(body: str, merge: str = MERGE) -> list[tuple[str, str]]:
    return [(BODY, merge + body)]


BUGS: list = [
    (
        NAME,
        "messages twice",
        other("    total = length(communication)\n    return total, total - overlap(communication, merge(compute))\n"),
        "time that two messages share counts twice",
    ),
    (NAME, "hidden", [("if not runs(compute", "if runs(compute")], "the second number is the hidden time"),
    (NAME, "empty lists", other("    end = max(b for _, b in compute)\n" + RIGHT), "a list may be empty"),
    (
        NAME,
        "sorted in place",
        [("    moments =", "    compute.sort()\n    communication.sort()\n    moments =")],
        "must not change its arguments",
    ),
    (NAME, "one number", [("return communicating, alone", "return alone")], r"expected \(communicating, exposed\)"),
    (
        NAME,
        "moments of messages",
        [("[*compute, *communication] for t", "communication for t")],
        "ends of compute intervals are moments too",
    ),
    (NAME, "without its ends", [("a <= start and end <= b", "a < start and end < b")], "covers it too: use <="),
    (
        NAME,
        "idle counts",
        [
            (
                "            if not runs(compute, start, end):\n                alone",
                "        if not runs(compute, start, end):\n            alone",
            )
        ],
        "time without any communication counts as exposed",
    ),
    (
        NAME,
        "nothing if one list is empty",
        [("    moments =", "    if not compute or not communication:\n        return 0.0, 0.0\n    moments =")],
        "the other still counts",
    ),
]
DIFFERENT: list = [
    (NAME, other(RIGHT)),
    (
        NAME,
        other(
            "    def union(intervals):\n        return length(merge(intervals))\n\n"
            "    both = union([*compute, *communication])\n    return union(communication), both - union(compute)\n"
        ),
    ),
    (
        NAME,
        other(
            "    events = [(t, 0, s) for a, b in compute for t, s in ((a, 1), (b, -1))]\n"
            "    events += [(t, 1, s) for a, b in communication for t, s in ((a, 1), (b, -1))]\n"
            "    active, last, total, alone = [0, 0], 0.0, 0.0, 0.0\n"
            "    for t, which, change in sorted(events):\n"
            "        if active[1]:\n            total += t - last\n            if not "
            "active[0]:\n                alone += t - last\n"
            "        active[which] += change\n        last = t\n    return total, alone\n"
        ),
    ),
]
