"""Exercise 6 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "interleaved_order"
WARM_UP = "min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, total)"
LAST = '    return order + [at("B", k) for k in range(total - warm_up, total)]\n'
LOOP = """    for k in range(total - warm_up):
        order += [at("F", warm_up + k), at("B", k)]
"""
BODY = f"""    def at(kind, k):
        group, place = divmod(k, ranks * chunks)
        chunk, i = divmod(place, ranks)
        return kind, chunk if kind == "F" else chunks - 1 - chunk, group * ranks + i

    total = micro_batches * chunks
    warm_up = {WARM_UP}
    order = [at("F", k) for k in range(warm_up)]
{LOOP}{LAST}"""

BUGS: list = [
    (NAME, "1F1B's warm-up", [(WARM_UP, "min(ranks - rank - 1, total)")], "the warm-up is that of 1F1B"),
    (NAME, "chunks ascend", [('chunk if kind == "F" else chunks - 1 - chunk', "chunk")], "from the first to the last"),
    (
        NAME,
        "no groups",
        [("divmod(k, ranks * chunks)", "(0, k)"), ("divmod(place, ranks)", "divmod(place, micro_batches)")],
        "in one group of all micro-batches",
    ),
    (NAME, "not capped", [(WARM_UP, WARM_UP[4:-8])], "more forward passes than there are"),
    (NAME, "no rest", [(LAST, "    return order\n")], "after the last forward pass are missing"),
    (
        NAME,
        "B first",
        [('[at("F", warm_up + k), at("B", k)]', '[at("B", k), at("F", warm_up + k)]')],
        "a pair begins with its backward pass",
    ),
    (NAME, "rank 0's warm-up", [("(ranks - rank - 1)", "(ranks - 1)")], "the warm-up is the same on every rank"),
    (NAME, "forward passes", [("group * ranks + i", "group * ranks + i // 2")], "write down the twelve forward passes"),
    (
        NAME,
        "backward passes",
        [("group * ranks + i", 'group * ranks + i if kind == "F" else micro_batches - 1 - group * ranks - i')],
        r"write down the twelve backward passes of rank 0, for 3 ranks, 6 micro-batches and 2 chunks",
    ),
    (
        NAME,
        "three more",
        [(WARM_UP, WARM_UP.replace("ranks, total", "ranks + 3, total"))],
        "count each rank's forward passes",
    ),
    (NAME, "a generator", [(LAST, "    return (a for a in order)\n")], "is not a list"),
    (
        NAME,
        "pairs",
        [('return kind, chunk if kind == "F" else chunks - 1 - chunk, ', "return kind, ")],
        r"contains \(\'F\', 0\); an entry looks like",
    ),
    (
        NAME,
        "too long",
        [(LAST, LAST + "\n"), ("range(total - warm_up, total)]", "range(total - warm_up, total + 1)]")],
        r"there are 4 micro-batches(.|\n)*One thing to try",
    ),
    (
        NAME,
        "a list that is indexed",
        [
            (
                LOOP,
                '    forward = [at("F", k) for k in range(total)]\n'
                "    order = [forward[k] for k in range(2 * (ranks - rank - 1) + (chunks - 1) * ranks)]\n" + LOOP,
            )
        ],
        "more forward passes than there are",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                BODY,
                """    forward, backward = [], []
    for first in range(0, micro_batches, ranks):
        group = range(first, first + ranks)
        forward += [("F", chunk, i) for chunk in range(chunks) for i in group]
        backward += [("B", chunk, i) for chunk in reversed(range(chunks)) for i in group]
    warm_up = 2 * (ranks - rank - 1) + (chunks - 1) * ranks
    order, forward = forward[:warm_up], forward[warm_up:]
    while forward:
        order += [forward.pop(0), backward.pop(0)]
    return order + backward
""",
            )
        ],
    ),
    (
        NAME,
        [
            (
                BODY,
                """    total, order, ahead = micro_batches * chunks, [], 0
    warm_up = min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, total)
    while len(order) < 2 * total:
        done = len(order) - ahead
        forward = ahead < total and ahead - done <= warm_up
        k = ahead if forward else done
        chunk = k // ranks % chunks
        micro = k // (ranks * chunks) * ranks + k % ranks
        order.append(["F", chunk, micro] if forward else ["B", chunks - 1 - chunk, micro])
        ahead += forward
    return tuple(order)
""",
            )
        ],
    ),
]
