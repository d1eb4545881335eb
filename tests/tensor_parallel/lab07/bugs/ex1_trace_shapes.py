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


def for_qkv(row: str) -> list[tuple[str, str]]:
    return [(FOUR, FOUR.replace(', "fc_o, naive"', "").replace(COLUMNS, row)), *for_naive(COLUMNS)]


CLASH = r"weight of fc_o:\n  got \(20, 5\), \(width, width / mp_size\), expected \(5, 20\)(.|\n)*as q, k and v are"
BUGS: list = [
    (NAME, "fc_o split on its output, as the others", for_o("(slice_, (width, part), slice_)"), CLASH),
    (
        NAME,
        "fc_o split on its output, out whole",
        for_o("(slice_, (width, part), whole)"),
        f"{CLASH}(.|\n)*takes these 5",
    ),
    (NAME, "fc_o as naive", for_o(COLUMNS), "x of fc_o(.|\n)*this is 'fc_o, naive', split on the output dimension"),
    (
        NAME,
        "fc_o with x collected",
        for_o("(whole, (part, width), whole)"),
        "what attention made of this rank's q, k and v",
    ),
    (NAME, "fc_o with out split", for_o("(slice_, (part, width), slice_)"), "a part of the sum, not of the features"),
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
        "q, k and v whole",
        for_qkv("(whole, (width, width), whole)"),
        "weight of fc_q(.|\n)*this is the whole layer",
    ),
    (NAME, "out of q, k and v not split", for_qkv("(whole, (width, part), whole)"), "its 5 columns make 5 features"),
    (NAME, "x of q, k and v split", for_qkv("(slice_, (width, part), slice_)"), "computes its columns from all 20"),
    (NAME, "q, k and v split on the input", for_qkv(ROWS), "a layer split on the input dimension, as fc_o is"),
    (
        NAME,
        "the batch is split",
        [("    whole,", "    batch = batch // mp_size\n    whole,")],
        r"x of fc_q(.|\n)*got \(2, 12, 20\), \(batch / mp_size, length, width\)(.|\n)*data parallelism",
    ),
    (
        NAME,
        "the length is split",
        [("    whole,", "    length = length // mp_size\n    whole,")],
        "sequence parallelism",
    ),
    (NAME, "naive's out as collected", for_naive("(whole, (width, part), whole)"), "before anything is collected"),
    (
        NAME,
        "naive's x as attention gives it",
        for_naive("(slice_, (width, part), slice_)"),
        "x is not collected yet, and a",
    ),
    (NAME, "naive as fc_o", for_naive(ROWS), "naive, it is split on the output dimension"),
    (NAME, "fc_o and naive exchanged", [*for_o(COLUMNS), *for_naive(ROWS)], "'fc_o' and 'fc_o, naive' are exchanged"),
    (NAME, "floats", [("//", "/")], r"x is \(8, 12, 5.0\)|out is \(8, 12, 5.0\)|weight is \(20, 5.0\)(.|\n)*// makes"),
    (NAME, "the part is mp_size wide", [(PART, "    part = mp_size\n")], "mp_size ranks share the width"),
    (NAME, "the remainder", [("//", "%")], "width % mp_size, the remainder"),
    (
        NAME,
        "batch and length flattened",
        [(TWO, "(batch * length, width), (batch * length, part)")],
        "are one dimension here",
    ),
    (NAME, "the weight first", [(COLUMNS, "((width, part), whole, slice_)")], r"the order is \(x, weight, out\)"),
    (NAME, "out first", [(COLUMNS, "(slice_, (width, part), whole)")], "x and out are exchanged"),
    (NAME, "a layer is missing", [(', "fc_o, naive"', "")], "missing: 'fc_o, naive'"),
    (NAME, "a name of its own", [("fc_o, naive", "fc_o_naive")], "too many: 'fc_o_naive'(.|\n)*letter by letter"),
    (NAME, "no return", [(RETURN, "")], "returned None(.|\n)*a return is missing"),
    (NAME, "two ranks for all", [(PART, "    part = width // 2\n")], "divided by 2, whatever mp_size is"),
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
