"""Exercise 5 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "bubble_and_stashes"
RETURN = "return wait / (work + wait), min(before[schedule], work)"

BUGS: list = [
    (NAME, "over useful time", [("wait / (work + wait)", "wait / work")], "bubble over the useful time"),
    (NAME, "without chunks", [("wait / (work + wait)", "wait / (micro_batches + wait)")], "chunks do not count"),
    (NAME, "no min", [("min(before[schedule], work)", "before[schedule]")], "there may be fewer passes"),
    (NAME, "p in place of p − 1", [("ranks - 1  # in", "ranks  # in")], "p ranks make p − 1 waits"),
    (NAME, "the bubble alone", [(RETURN, "return wait / (work + wait)")], r"expected \(bubble, stashes\)"),
    (NAME, "no warm-up of chunks", [("(chunks - 1) * ranks + 1", "1")], "the warm-up of interleaved 1F1B also has"),
    (
        NAME,
        "no min for interleaved",
        [("min(before[schedule], work)", "before[schedule] if chunks > 1 else min(before[schedule], work)")],
        "there may be fewer passes",
    ),
    (NAME, "no factor 2", [("2 * (ranks - 1)", "(ranks - 1)")], "chunks · ranks stashes are ranks − 1 too few"),
    (NAME, "no known cause", [("ranks - 1  # in", "ranks + 2  # in")], "in the figure of GPipe in section 3, count"),
    (NAME, "swapped", [(RETURN, "return min(before[schedule], work), wait / (work + wait)")], "in the wrong order"),
    (NAME, "a text", [("return wait / (work + wait)", "return str(wait / (work + wait))")], "expected a number"),
]

DIFFERENT = [
    (NAME, [("wait / (work + wait)", "1 - work / (work + wait)")]),
    (NAME, [(RETURN, "return [1 / (1 + work / wait) if wait else 0.0, sorted((before[schedule], work))[0]]")]),
]
