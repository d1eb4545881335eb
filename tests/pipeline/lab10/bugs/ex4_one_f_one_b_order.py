"""Exercise 4 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "one_f_one_b_order"
WARM_UP = "min(ranks - rank - 1, micro_batches)"
LOOP = '    for k in range(micro_batches - warm_up):\n        order += [("F", warm_up + k), ("B", k)]\n'
END = ' + [("B", i) for i in range(micro_batches - warm_up, micro_batches)]'
COUNTED = """    held, done, order = 0, 0, []
    for i in range(micro_batches):
        order.append(("F", i))
        held += 1
        if held > warm_up:
            order.append(("B", done))
            held, done = held - 1, done + 1
    return order + [("B", i) for i in range(done, micro_batches)]
"""

BUGS: list = [
    (NAME, "GPipe", [(WARM_UP, "micro_batches")], "GPipe's order, which keeps a stash of every micro-batch"),
    (NAME, "a longer warm-up", [("ranks - rank - 1", "ranks - rank")], "one forward pass too long"),
    (NAME, "no min", [(WARM_UP, "ranks - rank - 1")], "fewer micro-batches than forward passes in the warm-up"),
    (NAME, "backward first", [('[("F", warm_up + k), ("B", k)]', '[("B", k), ("F", warm_up + k)]')],
     "here the backward pass does"),
    (NAME, "no end", [(END, "")], "the backward passes at the end are missing"),
    (NAME, "a wrong micro-batch", [('("F", warm_up + k)', '("F", k)')], "is there 2 times"),
    (NAME, "a deadlock", [(WARM_UP, "min(ranks - rank - 1, micro_batches) if rank else 0"),
                          ('[("F", warm_up + k), ("B", k)]', '[("F", warm_up + k), ("B", k)] if rank != 1 else '
                           '[("B", k), ("F", warm_up + k)]')], "In this order"),
    (NAME, "a longer step", [(WARM_UP, "min(ranks - rank - 1, micro_batches, 1)")], "the step takes"),
    (NAME, "too many stashes", [(WARM_UP, "min(3 * (ranks - rank - 1), micro_batches)")],
     "holds up to . stashes at a time"),
]  # fmt: skip

DIFFERENT = [
    (NAME, [(LOOP, """    for i in range(warm_up, micro_batches):
        order.append(("F", i))
        order.append(("B", i - warm_up))
""")]),
    (NAME, [("    order = [", COUNTED + "    order = [")]),
]  # fmt: skip
