"""Exercise 5 of lab 11: mistakes that its check has to name, and right answers written differently."""

NAME = "waits_for"
SAME = "last not in begun.get(other, [])"
BODY = """    found = {}
    for rank, record in begun.items():
        if record:
            last = record[-1]
            missing = [other for other in members[last[0]] if last not in begun.get(other, [])]
            if missing:
                found[rank] = sorted(missing)
    return found
"""

BUGS: list = [
    (NAME, "only last entries", [(SAME, "begun.get(other, [])[-1:] != [last]")],
     "only the last entries of two records"),
    (NAME, "only numbers", [(SAME, "last[:2] not in [one[:2] for one in begun.get(other, [])]")],
     "names and sizes are not compared"),
    (NAME, "no sizes", [(SAME, "last[:3] not in [one[:3] for one in begun.get(other, [])]")],
     "the number of elements is not compared"),
    (NAME, "no groups", [(SAME, "last[1:] not in [one[1:] for one in begun.get(other, [])]")],
     "the group is not compared"),
    (NAME, "lengths", [(SAME, "len(begun.get(other, [])) < len(record)")], "the lengths of whole records are compared"),
    (NAME, "all ranks", [("members[last[0]]", "begun")], "not the members of the group"),
    (NAME, "empty lists", [("            if missing:\n    ", "            if True:\n    "),
                           ("        if record:\n            last", "        found[rank] = []\n        if record:\n"
                            "            last")],
     "have an empty list; leave them out"),
    (NAME, "missing in begun", [("begun.get(other, [])", "begun[other]")],
     "a rank that was killed is missing in `begun`"),
    (NAME, "empty records", [("        if record:\n", "        if True:\n")], "a record may be empty"),
    (NAME, "not sorted", [("sorted(missing)", "missing")], "not in ascending order"),
    (NAME, "sets", [("sorted(missing)", "set(missing)")], "instead of a sorted list of ranks"),
    (NAME, "pairs", [("    return found", "    return list(found.items())")], "instead of a dict from each waiting"),
    (NAME, "the members are sorted in place", [("            last = record[-1]\n", "            last = record[-1]\n"
                                                "            members[last[0]].sort()\n")],
     "must not change its arguments"),
    (NAME, "the record is emptied", [("record[-1]", "record.pop()")], "must not change its arguments"),
]  # fmt: skip
DIFFERENT: list = [
    (
        NAME,
        [
            (
                BODY,
                """    who = defaultdict(set)
    for rank, record in begun.items():
        for one in record:
            who[one].add(rank)
    last = {rank: record[-1] for rank, record in begun.items() if len(record)}
    waits = {rank: sorted(set(members[one[0]]) - who[one]) for rank, one in last.items()}
    return {rank: others for rank, others in waits.items() if others}
""",
            ),
            ("def waits_for", "from collections import defaultdict\n\n\ndef waits_for"),
        ],
    ),
    (
        NAME,
        [
            (
                BODY,
                """    table = {}
    for rank in begun:
        for group, number, name, elements in begun[rank]:
            table[rank, group, number] = (name, elements)
    found = {}
    for rank in begun:
        for group, number, name, elements in begun[rank][-1:]:
            for other in sorted(members[group]):
                if table.get((other, group, number)) != (name, elements):
                    found.setdefault(rank, []).append(other)
    return found
""",
            ),
        ],
    ),
    (NAME, [("sorted(missing)", "tuple(sorted(missing))")]),
]
