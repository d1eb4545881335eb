"""Exercise 3 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "sharded_groups"
TENSOR = "nn.Parameter(shard[at : at + end - begin])"
MOVE = "        at += end - begin\n"
MINE = 'mine = [tensor_of[number] for number in group["params"] if number in tensor_of]'
GROUP = 'param_groups.append({**group, "params": mine})'

# What the lists of checks/group_mistakes.py say is planted from there.
BUGS: list = [
    (
        NAME,
        "the shard is zeroed",
        [("    tensors, tensor_of, at", "    shard.zero_()\n    tensors, tensor_of, at")],
        "the shard holds the weights: take views of it,",
    ),
    (
        NAME,
        "pieces taken out",
        [("for number, begin, end in pieces:", "while pieces:\n        number, begin, end = pieces.pop(0)")],
        "the function must not change its arguments",
    ),
    (
        NAME,
        "one tensor for all pieces",
        [("return tensors, param_groups", "return [nn.Parameter(shard[:at])], param_groups")],
        "return one tensor per piece, even if several",
    ),
    (NAME, "copied", [(TENSOR, "nn.Parameter(shard[at : at + end - begin].clone())")], "clone\\(\\), torch.tensor"),
    (
        NAME,
        "begin as place, right size",
        [
            (
                TENSOR,
                "nn.Parameter(shard.repeat(9)[:0]) if begin + end - begin > len(shard)"
                " else nn.Parameter(shard[begin : begin + end - begin])",
            ),
            (MOVE, ""),
        ],
        "tensor",
    ),
    (
        NAME,
        "moved on by end",
        [(MOVE, "        at += end\n"), (TENSOR, "nn.Parameter(shard[at : at + end - begin])")],
        "tensor",
    ),
    (
        NAME,
        "a slice of a parameter",
        [(TENSOR, "nn.Parameter(shard)[at : at + end - begin]")],
        "a slice of an nn.Parameter is",
    ),
    (
        NAME,
        "plain tensors",
        [(TENSOR, "shard[at : at + end - begin]")],
        r"returned plain tensors; expected nn\.Parameters",
    ),
    (
        NAME,
        "numbers as indices, unchecked",
        [(MINE, 'mine = [tensors[n] for n in group["params"]]')],
        "a parameter number is not an index into",
    ),
    (
        NAME,
        "missing ones",
        [(MINE, 'mine = [tensor_of[number] for number in group["params"]]')],
        "leave a parameter without a piece here out of",
    ),
    (
        NAME,
        "in place",
        [(GROUP, 'group["params"] = mine\n        param_groups.append(group)')],
        "has changed the given groups",
    ),
    (
        NAME,
        "tensors twice",
        [(MINE, 'mine = [nn.Parameter(tensor_of[n].data) for n in group["params"] if n in tensor_of]')],
        "put the same objects in both: tensors created a",
    ),
    (
        NAME,
        "numbers stay",
        [(MINE, 'mine = [number for number in group["params"] if number in tensor_of]')],
        "replace each number with its tensor",
    ),
]

DIFFERENT: list = [
    (NAME, [(MINE, "mine = [t for n, t in tensor_of.items() if n in group['params']]")]),
    (NAME, [(MINE, 'mine = [tensor_of[n] for n in filter(tensor_of.__contains__, group["params"])]')]),
    (
        NAME,
        [
            (GROUP, "param_groups.append(dict(group, params=mine))"),
            ("return tensors, param_groups", "return tuple(tensors), tuple(param_groups)"),
        ],
    ),
    (NAME, [(TENSOR, "nn.Parameter(shard.narrow(0, at, end - begin))")]),
    (
        NAME,
        [
            (
                TENSOR,
                "nn.Parameter(shard.split([e - b for _, b, e in pieces] + [len(shard) - sum(e - b for _, b, e in "
                "pieces)])[len(tensors)])",
            ),
            (MOVE, ""),
        ],
    ),
]
