"""Exercise 1 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "trace_shapes"
PART = "    part = width // mp_size\n"
TWO = "(batch, length, width), (batch, length, part)"
FOUR = '    shapes = dict.fromkeys(("fc_q", "fc_k", "fc_v", "fc_o, naive"), (whole, (width, part), slice_))\n'
COLUMNS = "(whole, (width, part), slice_)"
ROWS = "(slice_, (part, width), whole)"
RETURN = "    return shapes\n"


def for_o(row: str) -> list[tuple[str, str]]:
    return [(ROWS, row)]


def for_naive(row: str) -> list[tuple[str, str]]:
    return [(RETURN, f'    shapes["fc_o, naive"] = {row}\n{RETURN}')]


CLASH = (
    r"weight of fc_o:\n  got \(20, 5\), \(width, width / mp_size\), expected \(5, 20\)"
    r"(.|\n)*if fc_o is split on the output dimension like"
)
BUGS: list = [
    (
        NAME,
        "fc_o split on its output, out whole",
        for_o("(slice_, (width, part), whole)"),
        f"{CLASH}(.|\n)*it takes exactly those",
    ),
    (
        NAME,
        "weights as nn.Linear stores them",
        [
            ("(width, part), slice_", "(part, width), slice_"),
            ("(slice_, (part, width), whole)", "(slice_, (width, part), whole)"),
        ],
        r"weight of fc_q \(and fc_k, fc_v, fc_o, fc_o, naive\)(.|\n)*as PyTorch's nn.Linear stores it",
    ),
    (
        NAME,
        "fc_o and naive exchanged",
        [*for_o(COLUMNS), *for_naive(ROWS)],
        "this is 'fc_o, naive', split on the output dimension",
    ),
    (NAME, "floats", [("//", "/")], r"\(20, 5.0\)(.|\n)*sizes are integers(.|\n)*// returns"),
    (NAME, "the weight first", [(COLUMNS, "((width, part), whole, slice_)")], r"the order is \(x, weight, out\)"),
    (NAME, "out first", [(COLUMNS, "(slice_, (width, part), whole)")], "x and out are exchanged"),
    (NAME, "a layer is missing", [(', "fc_o, naive"', "")], "missing: 'fc_o, naive'"),
    (
        NAME,
        "a name of its own",
        [("fc_o, naive", "fc_o_naive")],
        "too many: 'fc_o_naive'(.|\n)*spell the layers' names exactly as the",
    ),
    (NAME, "no return", [(RETURN, "")], "returned None(.|\n)*a return is missing"),
]

DIFFERENT: list = [
    (NAME, [(TWO, "[batch, length, width], [batch, length, part]")]),
    (NAME, [(PART, "    import numpy as np\n    part = np.int64(width) // mp_size\n")]),
    (
        NAME,
        [
            (FOUR, "    import torch\n    x, w = torch.empty(batch, length, width), torch.empty(width, part)\n"),
            (
                "    shapes[",
                "    shapes = {f'fc_{i}': [x.shape, w.shape, (x @ w).shape] for i in ('q', 'k', 'v', 'o, naive')}\n"
                "    shapes[",
            ),
        ],
    ),
    (
        NAME,
        [
            (PART, "    part, left = divmod(width, mp_size)\n    assert not left\n"),
            (RETURN, "    return dict(sorted(shapes.items()))\n"),
        ],
    ),
]
