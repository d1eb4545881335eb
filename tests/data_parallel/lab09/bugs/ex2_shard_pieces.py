"""Exercise 2 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "shard_pieces"
SIZE = "-(-sum(numels) // world_size)"
PIECE = "begin, end = max(first - start, 0), min(last - start, numel)"
ADD = "pieces.append((number, begin, end))"

# What the lists of checks/piece_mistakes.py say is planted from there.
BUGS: list = [
    (NAME, "a float", [(SIZE, "sum(numels) / world_size")], "/ returns a float; // returns an integer"),
    (NAME, "empty pieces", [("if begin < end:", "if begin <= end:")], "expected"),
    (NAME, "all", [("if begin < end:", "if True:")], "pieces are"),
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
        "the function must not change its arguments",
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
