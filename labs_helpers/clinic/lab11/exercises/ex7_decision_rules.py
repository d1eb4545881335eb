"""Lab 11, exercise 7: rules that name what is wrong with a job."""


def decision_rules():
    """Return rules that name the cause of a job's trouble from its findings: a list, in order.

    A rule is a pair (cause, conditions), and a condition a triple (finding, sign, bound), such as
    ("waits", ">", 4). A rule holds if all its conditions do; a finding that was not made fulfils no
    condition. The first rule that holds decides, and if none does, the job is healthy. The causes
    are the keys of CAUSES, the findings those of MEANING; sign is "<" or ">", and bound a number.

    The rules have to be right for every recorded job of `jobs()`, sick and cured, with any of the
    three recorded seeds, and for five of the six jobs of `jobs("later")`, which you do not see.
    """
    rules = [
        ("dead rank", [("dead ranks", ">", 0)]),
    ]
    # 1. First what is certain: hangs, wrong results, memory. These findings are counts, which have
    #    one value for healthy jobs. Then what is slow.
    # 2. A sick job can have the findings of another cause too: which of the two goes first?
    # 3. Choose a bound far from both sides, since the next machine is slower or busier.
    ### BEGIN SOLUTION
    rules += [
        ("deadlock", [("waiting ranks", ">", 0)]),
        ("diverging replicas", [("replicas that differ", ">", 0)]),
        ("overflow", [("steps without a change", ">", 0.5)]),
        ("same data", [("shared data", ">", 0.2)]),
        ("leak", [("growth", ">", 0.005)]),
        ("activations", [("headroom", "<", 0), ("activations", ">", 0.5)]),
        ("recompilation", [("compilations", ">", 0.2)]),
        ("printing", [("lines printed", ">", 0.8), ("waits", ">", 4)]),
        ("waiting for values", [("waits", ">", 4)]),
        ("straggler", [("spread of FLOPs", ">", 1.5)]),
        ("across nodes", [("avoidable", ">", 0.2)]),
        ("small messages", [("collectives", ">", 8), ("bytes per collective", "<", 1e6)]),
        ("starved loader", [("data", ">", 0.2), ("without loading", "<", 0.8)]),
        ("tiny batch", [("with twice the batch", "<", 1.35), ("headroom", ">", 0.5)]),
    ]
    ### END SOLUTION
    return rules
