"""Exercise 8 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "rank_groups"
ORDER = "    order = sorted(sizes, key=exposed.get)\n"
KEY = "(*place[:i], *place[i + 1 :])"
LINES = f"""        lines = {{}}
        for rank, place in enumerate(places):
            lines.setdefault({KEY}, []).append(rank)
        groups[axis] = list(lines.values())
"""
PLACES = "    places = list(itertools.product(*(range(sizes[axis]) for axis in order)))\n"
LOOP = f"    groups = {{}}\n    for i, axis in enumerate(order):\n{LINES}"

BUGS: list = [
    (NAME, "the order of sizes", [(ORDER, "    order = list(sizes)\n")], "`exposed` is not used"),
    (
        NAME,
        "the most exposed is slowest",
        [("key=exposed.get)", "key=exposed.get, reverse=True)")],
        "the axis with the most exposed bytes varies slowest(.|\n)*",
    ),
    (NAME, "planes", [(KEY, "place[i]")], "they must share all others"),
    (NAME, "by size", [("key=exposed.get", "key=sizes.get")], "ordered by size"),
    (
        NAME,
        "neighbors, of which none leaves a node",
        [("list(lines.values())", "[list(range(g, g + sizes[axis])) for g in range(0, len(places), sizes[axis])]")],
        r"\A(?!(.|\n)*leave a node)(.|\n)*neighboring ranks",
    ),
    (
        NAME,
        "the axes of the bytes",
        [("range(sizes[axis])", "range(exposed[axis])")],
        "groups for the axis .*; the mesh has",
    ),
    (
        NAME,
        "a group of too many",
        [("list(lines.values())", "[[0] * 10**6]")],
        "a group of the axis .* has 1,000,000 ranks; the mesh has only 8",
    ),
    (NAME, "ranks from 1", [("enumerate(places)", "enumerate(places, 1)")], "rank 8 does not exist: the mesh has the"),
    (
        NAME,
        "a long list",
        [("list(lines.values())", "list(lines.values())[: 11 if len(lines) == 12 else None]")],
        r"got \[…, (\[[\d, ]*\], )?\[\d+, \d+\]\], expected \[…, ",
    ),
    (
        NAME,
        "three axes",
        [(ORDER, ORDER + "    assert len(order) >= 2\n"), (KEY, "(place[i - 1], place[i - 2])")],
        "they must share all others|expected",
    ),
    (
        NAME,
        "only ranks of group 0",
        [("list(lines.values())", "list(lines.values())[:1]")],
        "only the groups of rank 0",
    ),
    (
        NAME,
        "one group, not a list",
        [("list(lines.values())", "lines[(0,) * (len(order) - 1)]")],
        "instead of a list of r",
    ),
    (
        NAME,
        "a list of axes",
        [("    return groups", "    return list(groups.values())")],
        "instead of a dict from each",
    ),
    (
        NAME,
        "the arguments change",
        [(ORDER, ORDER + "    exposed.pop(order[0])\n")],
        "must not change its arguments",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                PLACES + LOOP,
                """    world, groups, stride = range(math.prod(sizes.values())), {}, 1
    for axis in reversed(order):
        size = sizes[axis]
        first = [rank for rank in world if rank // stride % size == 0]
        groups[axis] = [[rank + k * stride for k in range(size)] for rank in first]
        stride *= size
""",
            ),
            ("import itertools\n", "import math\n"),
        ],
    ),
    (
        NAME,
        [
            (
                PLACES + LOOP,
                """    mesh = torch.arange(math.prod(sizes.values())).view([sizes[axis] for axis in order])
    groups = {axis: mesh.movedim(i, -1).reshape(-1, sizes[axis]).tolist() for i, axis in enumerate(order)}
""",
            ),
            ("import itertools\n", "import math\n\nimport torch\n"),
        ],
    ),
    (NAME, [("list(lines.values())", "tuple(map(tuple, reversed(lines.values())))")]),
]
