"""Exercise 10 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "parallel_cross_entropy"
LARGEST = 'largest = group.all_reduce(logits.amax(-1), "max")'
SHIFTED = "shifted = logits - largest[..., None]"
ROW, MINE = "row = targets - group.rank * rows", "mine = (row >= 0) & (row < rows)"
AT_TARGET = "at_target = shifted.gather(-1, row.clamp(0, rows - 1)[..., None])[..., 0] * mine"
TOTAL = "total, at_target = group.all_reduce(torch.stack([shifted.exp().sum(-1), at_target]))"
GRAD = "grad_logits = shifted.exp() / total[..., None]"
ONE = "grad_logits.scatter_add_(-1, row.clamp(0, rows - 1)[..., None], -mine.float()[..., None])"
RETURN = "return (total.log() - at_target).mean(), grad_logits / targets.numel()"

BUGS = [
    (NAME, *bug)
    for bug in (
        (
            "clamp without a mask, before the shift",
            [
                (AT_TARGET, "at_target = logits.gather(-1, row.clamp(0, rows - 1)[..., None])[..., 0]"),
                (RETURN, RETURN.replace("total.log()", "total.log() + largest")),
            ],
            "rank 0's loss(.|\n)*a target of another rank has no row on this",
        ),
        (
            "the whole loss added up",
            [
                (TOTAL, "total = group.all_reduce(shifted.exp().sum(-1))"),
                (RETURN, RETURN.replace("(total", "group.all_reduce((total", 1).replace(".mean(),", ".mean()),")),
            ],
            "rank 0's loss(.|\n)*counts it p times",
        ),
        ("per logit", [("/ targets.numel()", "/ logits.numel()")], "grad_logits(.|\n)*by the number of tokens"),
        (
            "no maximum",
            [(LARGEST, "largest = torch.zeros_like(logits[..., 0])")],
            "logits near 10,000: rank 0's loss(.|\n)*got inf(.|\n)*exp overflows",
        ),
        ("own maximum", [(LARGEST, "largest = logits.amax(-1)")], "subtracts its own largest logit"),
        (
            "maxima added up",
            [('.amax(-1), "max")', ".amax(-1))")],
            "logits near 10,000(.|\n)*largest logits are added up",
        ),
        (
            "one maximum",
            [(LARGEST, 'largest = group.all_reduce(logits.amax(), "max").expand(targets.shape)')],
            "near 10,000 and −10,000(.|\n)*the number subtracted is far above all logits",
        ),
        (
            "the largest of the smallest",
            [("amax", "amin")],
            "near 10,000 and −10,000(.|\n)*exp overflows or is 0 everywhere; do you",
        ),
        ("offset of V", [("group.rank * rows", "group.rank * rows * group.size")], "not at rank · V$"),
        ("no offset", [(ROW, "row = targets")], "not at 0 on every rank"),
        (
            "squeezed",
            [("), grad_logits /", "), grad_logits.squeeze() /")],
            r"sequences of one token: rank 0's grad_logits(.|\n)*squeeze\(\) drops every dimension of size 1,",
        ),
        ("off by one", [(ROW, f"{ROW} - 1")], r"not at rank · V / p \+ 1"),
        ("modulo", [(ROW, "row = targets % rows")], "a target of another rank has no row on this"),
        (
            "clamp without a mask",
            [(MINE, "mine = torch.ones_like(row, dtype=torch.bool)")],
            "a target of another rank has no row on this",
        ),
        (
            "no clamp",
            [("row.clamp(0, rows - 1)", "row")],
            "out of bounds(.|\n)*a target of another rank has no row in this",
        ),
        (
            "negative rows",
            [
                (MINE, "mine, b, l = row < rows, *torch.meshgrid(*map(torch.arange, row.shape), indexing='ij')"),
                (AT_TARGET, "at_target = shifted[b, l, row.clamp(max=rows - 1)] * mine"),
            ],
            "a target below this rank's part gives a",
        ),
        ("row 0 left out", [("row >= 0", "row > 0")], "the first row of each part is masked, but row"),
        ("row V / p", [("row < rows", "row <= rows")], "row V / p is not masked, but it belongs to"),
        ("and", [("&", "and")], "is ambiguous(.|\n)*with parentheses"),
        (
            "logits gathered",
            [
                (LARGEST, "whole = group.all_gather(logits, -1)\n    largest = whole.amax(-1)"),
                (
                    TOTAL,
                    "total = (whole - largest[..., None]).exp().sum(-1)\n    at_target = group.all_reduce(at_target)",
                ),
            ],
            "3,253 bytes leave each rank, against 373 with V = 12(.|\n)*the logits are gathered",
        ),
        (
            "sum of this rank alone",
            [(TOTAL, "total, at_target = shifted.exp().sum(-1), group.all_reduce(at_target)")],
            "the sum of exponentials covers only this",
        ),
        (
            "target of this rank alone",
            [(TOTAL, "total = group.all_reduce(shifted.exp().sum(-1))")],
            "only one rank holds the target's logit; add",
        ),
        ("largest sum", [("at_target]))", 'at_target]), "max")')], "this takes their maximum"),
        ("sum for mean", [(").mean()", ").sum()")], "the mean over the tokens"),
        ("per token", [(").mean()", ")")], r"shape \(3, 4\)(.|\n)*the mean over the tokens"),
        ("log2", [("total.log()", "total.log2()")], "natural logarithm"),
        (
            "a small number in the logarithm",
            [("total.log()", "(total + 1e-6).log()")],
            "30 above all other(.|\n)*it adds a number to the sum before taking its",
        ),
        (
            "a small number below the softmax",
            [("/ total[..., None]", "/ (total + 1e-6)[..., None]")],
            "grad_logits(.|\n)*some step runs in float16 or bfloat16, or",
        ),
        (
            "target not shifted",
            [("shifted.gather", "logits.gather")],
            "subtracted only in the sum or only at the target",
        ),
        (
            "probability",
            [("(total.log() - at_target)", "(-(at_target.exp() / total).log())")],
            "20,000 below(.|\n)*got inf(.|\n)*float32 cannot represent such a small",
        ),
        (
            "tokens of this rank",
            [("at_target).mean()", "at_target)[mine].mean()")],
            "tokens whose targets this rank holds",
        ),
        ("no −1", [(ONE, "pass")], "−1 at the target is missing"),
        ("−1 on every rank", [("-mine.float()", "-torch.ones_like(mine).float()")], "grad_logits(.|\n)*must not count"),
        (
            "softmax of this rank",
            [(GRAD, "grad_logits = logits.softmax(-1)")],
            "grad_logits(.|\n)*the sum of exponentials covers only this",
        ),
        (
            "gradient of the sum",
            [("grad_logits / targets.numel()", "grad_logits")],
            "divide the gradient by the number of",
        ),
        (
            "gradient reduced",
            [("grad_logits / t", "group.all_reduce(grad_logits) / t")],
            "each rank returns the gradient of its own",
        ),
        ("in place", [(SHIFTED, "shifted = logits.sub_(largest[..., None])")], "logits must stay unchanged"),
        ("float", [(".mean(), grad", ".mean().item(), grad")], r"\.item\(\) and float\(\) convert it to a Python"),
        ("float64", [("grad_logits / t", "grad_logits.double() / t")], "is torch.float64, expected torch.float32"),
        (
            "view",
            [(ROW, "row = targets.view(-1).reshape(targets.shape) - group.rank * rows")],
            "sliced logits and targets(.|\n)*view does not",
        ),
        (
            "if it has targets",
            [
                (
                    TOTAL,
                    "total = group.all_reduce(shifted.exp().sum(-1))\n    if mine.any():\n"
                    "        at_target = group.all_reduce(at_target)",
                )
            ],
            "some ranks call it and others do not",
        ),
        (
            "on rank 0 alone",
            [(LARGEST, f"largest = logits.amax(-1)\n    if group.rank == 0:\n        {LARGEST}")],
            "outside of any if",
        ),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [  # each rank's own maximum, corrected
            (LARGEST, f"own = logits.amax(-1)\n    {LARGEST}"),
            (
                TOTAL,
                "own_total = (logits - own[..., None]).exp().sum(-1) * (own - largest).exp()\n"
                "    total, at_target = group.all_reduce(own_total), group.all_reduce(at_target)",
            ),
        ],
        [
            (LARGEST, "largest = group.all_gather(logits.logsumexp(-1)[None]).logsumexp(0)"),
            (TOTAL, "total, at_target = torch.ones_like(largest), group.all_reduce(at_target)"),
        ],
        [
            (ROW, "row = targets % rows"),
            (MINE, "mine = targets // rows == group.rank"),
            (ONE, "grad_logits -= torch.nn.functional.one_hot(row, rows) * mine[..., None]"),
            (RETURN, "return [(total.log() - at_target).sum() / targets.numel(), grad_logits / targets.numel()]"),
        ],
        [
            (
                AT_TARGET,
                "b, l = mine.nonzero(as_tuple=True)\n    at_target = torch.zeros(targets.shape)\n"
                "    at_target[b, l] = logits[b, l, row[b, l]]",
            ),
            (ONE, "grad_logits[b, l, row[b, l]] -= 1"),
            ("total.log() -", "total.log() + largest -"),
        ],
    )
]
