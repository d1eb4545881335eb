"""Exercise 2 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "shard_pieces"
SIZE = "-(-sum(numels) // world_size)"
BOUNDS = "first, last = rank * shard_numel, (rank + 1) * shard_numel"
PIECE = "begin, end = max(first - start, 0), min(last - start, numel)"
ADD = "pieces.append((number, begin, end))"

BUGS: list = [
    (NAME, "begin before the parameter", [("max(first - start, 0)", "first - start")], "begin may lie before"),
    (NAME, "end behind the parameter", [("min(last - start, numel)", "last - start")], "end may lie behind"),
    (NAME, "start stays", [("        start += numel\n", "")], "start is not moved on"),
    (
        NAME,
        "ends early",
        [("        start += numel\n", "        else:\n            break\n        start += numel\n")],
        "the first parameter without a piece ends the loop",
    ),
    (
        NAME,
        "padding as a piece",
        [
            (
                "    return shard_numel, pieces",
                "    if last > start:\n        pieces.append("
                "(len(numels), max(first - start, 0), last - start))\n    return shard_numel, pieces",
            )
        ],
        "here it is a piece",
    ),
    (NAME, "rounded down", [(SIZE, "sum(numels) // world_size")], "rounds down, and what is left over"),
    (NAME, "one more always", [(SIZE, "sum(numels) // world_size + 1")], "one more only if something is left over"),
    (NAME, "a float", [(SIZE, "sum(numels) / world_size")], "/ makes a float"),
    (NAME, "each padded", [(SIZE, "sum(-(-n // world_size) for n in numels)")], "each parameter is padded for itself"),
    (
        NAME,
        "the padded whole",
        [("return shard_numel, pieces", "return shard_numel * world_size, pieces")],
        "flat memory with its padding",
    ),
    (
        NAME,
        "the last shard short",
        [("return shard_numel, pieces", "return sum(e - b for _, b, e in pieces), pieces")],
        "the last shard is short",
    ),
    (NAME, "the number of parameters", [(SIZE, "-(-len(numels) // world_size)")], "it is elements that are divided"),
    (NAME, "begins one late", [(BOUNDS, BOUNDS + "\n    first += 1")], "begins one element late"),
    (NAME, "ends one early", [(BOUNDS, BOUNDS + "\n    last -= 1")], "ends one element early"),
    (NAME, "ends one late", [(BOUNDS, BOUNDS + "\n    last += 1")], "ends one element late"),
    (
        NAME,
        "ranks from 1",
        [(BOUNDS, "first, last = (rank + 1) * shard_numel, (rank + 2) * shard_numel")],
        "ranks count from 0",
    ),
    (NAME, "inclusive end", [(ADD, "pieces.append((number, begin, end - 1))")], "the last one that is"),
    (NAME, "numbers of elements", [(ADD, "pieces.append((number, begin, end - begin))")], "not how many elements"),
    (
        NAME,
        "flat indices",
        [(ADD, "pieces.append((number, start + begin, start + end))")],
        "count from the start of flat",
    ),
    (
        NAME,
        "shard indices",
        [(ADD, "pieces.append((number, start + begin - first, start + end - first))")],
        "count from the start of the shard",
    ),
    (NAME, "whole parameters", [(ADD, "pieces.append((number, 0, numel))")], "is taken whole"),
    (
        NAME,
        "only where it begins",
        [("if begin < end:", "if begin < end and begin == 0:")],
        "began in an earlier shard",
    ),
    (NAME, "uncut ones alone", [("if begin < end:", "if 0 < end - begin == numel:")], "as a whole are taken"),
    (NAME, "empty pieces", [("if begin < end:", "if begin <= end:")], "expected"),
    (NAME, "all", [("if begin < end:", "if True:")], "pieces are"),
    (
        NAME,
        "padding counted",
        [
            (
                "    pieces, start = [], 0",
                "    numels = [*numels[:-1], numels[-1] + shard_numel * world_size"
                " - sum(numels)]\n    pieces, start = [], 0",
            )
        ],
        "padding is counted",
    ),
    (NAME, "begin forgotten", [("max(first - start, 0)", "0")], "begin"),
    (
        NAME,
        "numels popped",
        [
            (
                "for number, numel in enumerate(numels):",
                "for number in range(len(numels)):\n        numel = numels.pop(0)",
            )
        ],
        "numels that you were given has changed",
    ),
    (NAME, "not returned", [("return shard_numel, pieces", "shard_numel, pieces")], "a return is missing"),
]

DIFFERENT: list = [
    (
        NAME,
        [
            (
                PIECE,
                "mine = [at for at in range(numel) if first <= start + at < last]\n"
                "        begin, end = (mine[0], mine[-1] + 1) if mine else (0, 0)",
            )
        ],
    ),
    (NAME, [(SIZE, "(sum(numels) + world_size - 1) // world_size")]),
    (
        NAME,
        [
            (SIZE, "sum(numels) // world_size + (sum(numels) % world_size > 0)"),
            (ADD, "pieces += [[number, begin, end]]"),
        ],
    ),
    (
        NAME,
        [
            (
                PIECE,
                "mine = range(max(start, first), min(start + numel, last))\n"
                "        begin, end = mine.start - start, mine.stop - start",
            )
        ],
    ),
]
