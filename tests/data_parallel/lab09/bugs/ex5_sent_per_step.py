"""Exercise 5 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "sent_per_step"
SHARE = "share = (ranks - 1) / ranks"

# What the lists of checks/ex5_sent_per_step.py say is planted from there.
BUGS: list = [
    (NAME, "an all-reduce once", [('"DDP": 2 * G', '"DDP": G')], "an all-reduce is a reduce-scatter and an all-gather"),
    (NAME, "1x with all-reduce", [("2 * G + P", "G + P")], "an all-reduce is a reduce-scatter and an all-gather"),
    (NAME, "parameters all-reduced", [("2 * G + P", "2 * G + 2 * P")], "parameters are gathered, not reduced"),
    (
        NAME,
        "gradients and parameters",
        [("K * (2 * P + G)", "K * (2 * G + P)")],
        "gradients and parameters are swapped",
    ),
    (NAME, "rounded", [(SHARE, "share = (ranks - 1) // ranks")], "rounds it down"),
    (NAME, "not returned", [("return {", "found = {")], "a return is missing"),
    (NAME, "other names", [('"ZeRO-3":', '"zero3":')], "use the exact names of the schemes from the"),
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
