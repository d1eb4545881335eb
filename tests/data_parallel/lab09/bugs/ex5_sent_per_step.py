"""Exercise 5 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "sent_per_step"
SHARE = "share = (ranks - 1) / ranks"

BUGS: list = [
    (NAME, "an all-reduce once", [('"DDP": 2 * G', '"DDP": G')], "an all-reduce is a reduce-scatter and an all-gather"),
    (NAME, "DDP in every pass", [('"DDP": 2 * G', '"DDP": 2 * K * G')], "so that it can send once per step"),
    (NAME, "DDP gathers", [('"DDP": 2 * G', '"DDP": 2 * G + P')], "no gather"),
    (NAME, "the update stays at home", [('"ZeRO-1": G + P', '"ZeRO-1": G')], "updated parameters have to be gathered"),
    (NAME, "ZeRO-1 all-reduces", [('"ZeRO-1": G + P', '"ZeRO-1": 2 * G + P')], "this is with an all-reduce"),
    (NAME, "1x with all-reduce", [("2 * G + P", "G + P")], "an all-reduce is a reduce-scatter and an all-gather"),
    (NAME, "parameters all-reduced", [("2 * G + P", "2 * G + 2 * P")], "parameters are gathered, not reduced"),
    (NAME, "ZeRO-1 in every pass", [('"ZeRO-1": G + P', '"ZeRO-1": K * G + P')], "once per step, not in every pass"),
    (NAME, "ZeRO-2 once", [('"ZeRO-2": K * G + P', '"ZeRO-2": G + P')], "every backward pass reduce-scatters"),
    (NAME, "ZeRO-2 gathers in every pass", [("K * G + P", "K * (G + P)")], "once per step, after the update"),
    (NAME, "ZeRO-3 gathers once", [("K * (2 * P + G)", "K * (P + G)")], "and again for the backward pass"),
    (
        NAME,
        "ZeRO-3 gathers after the update",
        [("K * (2 * P + G)", "K * (2 * P + G) + P")],
        "nothing is gathered after",
    ),
    (NAME, "ZeRO-3 all-reduces", [("K * (2 * P + G)", "2 * K * (P + G)")], "reduce-scattered, not all-reduced"),
    (NAME, "ZeRO-3 once", [("K * (2 * P + G)", "2 * P + G")], "every micro-batch gathers and reduce-scatters"),
    (NAME, "gradients and parameters", [("K * (2 * P + G)", "K * (2 * G + P)")], "exchanged"),
    (NAME, "the whole", [(SHARE, "share = 1")], "its own part stays"),
    (NAME, "received from each", [(SHARE, "share = ranks - 1")], "N − 1 are sent"),
    (NAME, "a part", [(SHARE, "share = 1 / ranks")], "and this 1 / N"),
    (NAME, "rounded", [(SHARE, "share = (ranks - 1) // ranks")], "rounds it down"),
]

DIFFERENT: list = [
    (NAME, [(SHARE, "share = 1 - 1 / ranks")]),
    (NAME, [("K * (2 * P + G)", "sum([P, P, G]) * K")]),
    (
        NAME,
        [
            ("    return {\n", "    return dict(sorted({\n"),
            ('"ZeRO-3": K * (2 * P + G),\n    }', '"ZeRO-3": K * (2 * P + G),\n    }.items()))'),
        ],
    ),
]
