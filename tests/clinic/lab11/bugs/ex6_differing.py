"""Exercise 6 of lab 11: mistakes that its check has to name, and right answers written differently."""

NAME = "differing"
CHECKSUMS = "[checksum(x) for x in parameters.values()]"
COMPARE = "(by_rank != by_rank[0]).any(0)"
GATHER = "group.all_gather(mine).view(group.size, len(parameters))"
NUMBERS = f"torch.tensor({CHECKSUMS}, dtype=torch.int64)"
BODY = f"""    mine = {NUMBERS}
    by_rank = {GATHER}
    differs = {COMPARE}
"""

BUGS: list = [
    (NAME, "sums", [(CHECKSUMS, "[x.double().sum().item() for x in parameters.values()]"),
                    ("torch.int64", "torch.float64")],
     "a sum, a mean or a norm .* and NaN != NaN"),
    (NAME, "sums of numbers", [(NUMBERS, "torch.stack([x.nan_to_num().double().sum() for x in parameters.values()])")],
     "a sum, a mean or a norm"),
    (NAME, "float32", [("dtype=torch.int64", "dtype=torch.float32")], "as float32 keeps 24"),
    (NAME, "int32", [("dtype=torch.int64", "dtype=torch.int32")], "more than int32 holds; int64 holds it"),
    (NAME, "cast before the checksum", [("checksum(x) for", "checksum(x.float()) for")], "cast to float32 before"),
    (NAME, "only rank 0", [(COMPARE, "(mine != by_rank[0])")], "compares only with rank 0"),
    (NAME, "only the next rank", [(COMPARE, "(mine != by_rank[(group.rank + 1) % group.size])")],
     "compares only with the next rank"),
    (NAME, "the largest", [(GATHER, "group.all_reduce(mine, 'max')"), (COMPARE, "mine != by_rank")],
     "with the largest of all"),
    (NAME, "the first and the last", [(COMPARE, "(by_rank[0] != by_rank[-1])")], "only the first and the last rank"),
    (NAME, "rows and columns", [(GATHER, "group.all_gather(mine).view(len(parameters), group.size).T")],
     "one row per rank, and a column per parameter"),
    (NAME, "whole parameters", [(BODY, "    differs = [(g := group.all_gather(x.reshape(1, -1).float())).ne(g[0])"
                                 ".any() for x in parameters.values()]\n")],
     "whole parameters travel"),
    (NAME, "one by one", [(BODY, "    differs = [len(set(group.all_gather(torch.tensor([checksum(x)])).tolist())) > 1 "
                           "for x in parameters.values()]\n")],
     "each parameter travels alone"),
    (NAME, "not sorted", [("sorted(name for", "list(name for")], "the names are not sorted"),
    (NAME, "the same ones", [("if differ)", "if not differ)")], "the same on all ranks"),
    (NAME, "only rank 0 gathers", [("    by_rank =", "    if group.rank:\n        return []\n    by_rank =")],
     "every rank has to call the same collectives"),
    (NAME, "a set", [("sorted(name for", "set(name for")], "instead of a sorted list of names"),
    (NAME, "the parameters are changed", [("    mine =", "    [x.zero_() for x in parameters.values()]\n    mine =")],
     "changes its parameters"),
]  # fmt: skip
DIFFERENT: list = [
    (
        NAME,
        [
            (
                BODY,
                f"""    mine = {NUMBERS}
    differs = group.all_reduce(mine, "max") + group.all_reduce(-mine, "max")
""",
            )
        ],
    ),
    (
        NAME,
        [
            (
                BODY,
                """    data = [x.contiguous().flatten().view(torch.uint8).numpy() for x in parameters.values()]
    digests = map(hashlib.md5, data)
    mine = torch.tensor(list(b"".join(one.digest() for one in digests)), dtype=torch.uint8)
    all_bytes = bytes(group.all_gather(mine).tolist())
    columns = [
        {all_bytes[at : at + 16] for at in range(16 * i, len(all_bytes), 16 * len(parameters))}
        for i in range(len(parameters))
    ]
    differs = [len(column) > 1 for column in columns]
""",
            ),
            ("import zlib\n", "import hashlib\nimport zlib\n"),
        ],
    ),
    (
        NAME,
        [
            (
                BODY,
                f"""    mine = np.array({CHECKSUMS}, dtype=np.uint32)
    by_rank = group.all_gather(torch.from_numpy(mine.view(np.int32))).tolist()
    count = len(parameters)
    differs = [any(one != by_rank[i] for one in by_rank[i::count]) for i in range(count)]
""",
            ),
            ("import torch\n", "import numpy as np\nimport torch\n"),
        ],
    ),
]
