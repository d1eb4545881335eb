"""Exercise 1 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "states_in_bytes"
DDP = '"DDP": (parameters, gradients, optimizer)'
ONE = '"ZeRO-1": (parameters, gradients, optimizer / ranks)'
TWO = '"ZeRO-2": (parameters, gradients / ranks, optimizer / ranks)'
THREE = '"ZeRO-3": (parameters / ranks, gradients / ranks, optimizer / ranks)'
COUNTED = "(count * each for each in layouts[layout])"

BUGS: list = [
    (NAME, "moments alone", [("(2, 2, 12)", "(2, 2, 8)")], "one of the three is missing"),
    (NAME, "master weights as parameters", [("(2, 2, 12)", "(6, 2, 8)")], "the master weights belong to the optimizer"),
    (
        NAME,
        "master weights whole",
        [(ONE, '"ZeRO-1": (parameters, gradients, optimizer / ranks + (4 - 4 / ranks) * count * (layout[-1] == "r"))')],
        "divided with its moments",
    ),
    (
        NAME,
        "one moment",
        [("(4, 4, 8)", "(4, 4, 4)")],
        "the optimizer keeps two float32 moments and the|Adam keeps two moments",
    ),
    (NAME, "autocast in 16 bits", [("(4, 4, 8)", "(2, 2, 12)")], "autocast stores parameters in float32 and"),
    (NAME, "autocast's gradients", [("(4, 4, 8)", "(4, 2, 8)")], "gradients have the dtype of their parameters,"),
    (NAME, "float32 gradients", [("(2, 2, 12)", "(2, 4, 12)")], "gradients are bf16 here"),
    (NAME, "float32 moments", [("(2, 2, 4)", "(2, 2, 8)")], "the moments are bf16 here"),
    (NAME, "a master in bf16", [("(2, 2, 4)", "(2, 2, 12)")], "this layout has no second copy"),
    (
        NAME,
        "ZeRO-2 leaves gradients",
        [(TWO, TWO.replace("gradients / ranks", "gradients"))],
        "ZeRO-2 divides the grad",
    ),
    (
        NAME,
        "ZeRO-1 cuts gradients",
        [(ONE, ONE.replace("gradients", "gradients / ranks"))],
        "ZeRO-1 leaves the gradients",
    ),
    (
        NAME,
        "ZeRO-3 keeps parameters",
        [(THREE, THREE.replace("parameters / ranks", "parameters"))],
        "ZeRO-3 divides the p",
    ),
    (
        NAME,
        "ZeRO-3 alone cuts",
        [(TWO, TWO.replace("gradients / ranks", "gradients")), (ONE, ONE.replace(" / ranks", ""))],
        "ZeRO-2 divides the gradients",
    ),
    (
        NAME,
        "DDP divides",
        [(DDP, DDP.replace("optimizer", "optimizer / ranks"))],
        "DDP leaves the optimizer states whole",
    ),
    (NAME, "rounded down", [(" / ranks", " // ranks")], "// rounds down"),
    (NAME, "in GB", [(COUNTED, "(count * each / 1e9 for each in layouts[layout])")], "this is in GB; return bytes"),
    (NAME, "in GiB", [(COUNTED, "(count * each / 2**30 for each in layouts[layout])")], "this is in GiB; return bytes"),
    (NAME, "in bits", [(COUNTED, "(8 * count * each for each in layouts[layout])")], "this is in bits"),
    (NAME, "a stage is missing", [("        " + DDP + ",\n", "")], "missing: 'DDP'"),
    (
        NAME,
        "sums",
        [(THREE, '"ZeRO-3": (parameters + gradients + optimizer) / ranks')],
        "expected {name",
    ),
]

DIFFERENT: list = [
    (NAME, [(DDP, '"DDP": [parameters, gradients, optimizer]')]),
    (NAME, [("(2, 2, 12)", "(2, 2, 4 + 4 + 4)"), (COUNTED, "[each * count for each in layouts[layout]]")]),
    (
        NAME,
        [
            ("    return {\n", "    table = {\n"),
            ("    ### END", "    return dict(reversed(list(table.items())))\n    ### END"),
        ],
    ),
]
