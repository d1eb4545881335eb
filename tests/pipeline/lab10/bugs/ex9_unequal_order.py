"""Exercise 9 of lab 10: mistakes that its check has to name, and right answers written differently."""

import inspect

from tests.pipeline.lab10.exercises import ex9_unequal_order

NAME = "unequal_order"
BODY = inspect.getsource(ex9_unequal_order).split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
FULL = 'i - done[rank]["W"] == stashes[rank]'
RETURN = "    return orders\n"
INDEX = '"IFW".index(kind), r, kind'

BUGS: list = [
    (NAME, "F first", [(INDEX, INDEX.replace("IFW", "FIW"))], "a ready F starts before a ready I"),
    (NAME, "W first", [(INDEX, INDEX.replace("IFW", "WIF"))], "a ready W starts before a ready F or I"),
    (NAME, "any number of stashes", [(FULL, "False")], "`stashes` is not used"),
    (NAME, "rank 0's stashes", [("== stashes[rank]", "== stashes[0]")], "stashes.0. is used for every rank"),
    (
        NAME,
        "stashes end with I",
        [(FULL, 'i - done[rank]["I"] == stashes[rank]')],
        r"holds up to \d+ stashes; it may hold 7",
    ),
    (NAME, "no split", [(RETURN, '    return [[("B", i) if k == "I" else (k, i) for k, i in o] for o in orders]\n')],
     r"contains \('B', 0\); an entry looks like .* F or I or W"),
    (NAME, "no weights", [(RETURN, '    return [[a for a in order if a[0] != "W"] for order in orders]\n')],
     "the weights' gradients W are missing"),
    (NAME, "one list", [(RETURN, "    return [action for order in orders for action in order]\n")], "one per rank"),
    (NAME, "reversed", [(RETURN, "    return orders[::-1]\n")], "element r belongs to rank r"),
    (NAME, "a dict", [(RETURN, "    return dict(enumerate(orders))\n")], "instead of a list of 4 lists"),
    (NAME, "unknown inputs", [(" or any(one not in ended for one in needed)", "")], "inputs may not exist yet"),
    (NAME, "the arguments change", [("    ranks = len(times)\n", "    ranks = len(times)\n    stashes[0] += 1\n")],
     "must not change its arguments"),
    (NAME, "W waits for the last F", [('needed = [("I", rank, i)] if kind == "W" else []',
      'needed = [("I", rank, i), ("I", rank, min(i + 2, micro_batches - 1))] if kind == "W" else []')],
     r"waits from [\d.]+ to [\d.]+, but W\d could run then"),
]  # fmt: skip
BY_TIME = """    ranks, now = len(times), 0.0
    orders = [[] for _ in times]
    count = [dict.fromkeys("FIW", 0) for _ in times]
    ends = [[] for _ in times]

    def over(rank, kind, i):
        return ("over", kind, i) in over_at[rank] and over_at[rank]["over", kind, i] <= now + 1e-12

    over_at = [{} for _ in times]
    while sum(map(len, orders)) < 3 * ranks * micro_batches:
        for rank in range(ranks):
            if ends[rank] and ends[rank][-1] > now + 1e-12:
                continue
            for kind in ("I", "F", "W"):
                i = count[rank][kind]
                if i == micro_batches:
                    continue
                if kind == "F" and (i - count[rank]["W"] >= stashes[rank] or rank and not over(rank - 1, "F", i)):
                    continue
                if kind == "I" and not over(rank, "F", i):
                    continue
                if kind == "I" and rank < ranks - 1 and not over(rank + 1, "I", i):
                    continue
                if kind == "W" and not over(rank, "I", i):
                    continue
                orders[rank].append([kind, i])
                count[rank][kind] += 1
                ends[rank].append(now + times[rank]["FIW".index(kind)])
                over_at[rank]["over", kind, i] = ends[rank][-1]
                break
        now = min((end for some in ends for end in some[-1:] if end > now + 1e-12), default=now)
    return tuple(map(tuple, orders))
"""
BEST_OF = """    best = None
    for first in ("IFW", "FIW"):
        orders, seconds = listed(times, micro_batches, stashes, first)
        if best is None or seconds < best[1]:
            best = orders, seconds
    return best[0]


def listed(times, micro_batches, stashes, first):
""" + BODY.replace('"IFW".index(kind), r', "first.index(kind), r").replace(RETURN, "    return orders, max(free)\n")
DIFFERENT: list = [(NAME, [(BODY, BY_TIME)]), (NAME, [(BODY, BEST_OF)])]
