"""Exercise 3 of lab 11: mistakes that its check has to name, and right answers written differently."""

import inspect

from labs_helpers.clinic.lab11.exercises import ex3_find_straggler

NAME = "find_straggler"
BODY = inspect.getsource(ex3_find_straggler).split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
LIMIT = "max(waits) - shortest <= 0.1 * per_step"
WASTE = "sum(wait - shortest for wait in waits) / others"
MEAN = "mean(stop - start for start, stop in zip(*times, strict=True))"
STEPS = "(len(finished[0]) - 1)"

BUGS: list = [
    (NAME, "the longest wait", [("waits.index(shortest)", "waits.index(max(waits))")], "this rank waits longest"),
    (NAME, "moments of different ranks", [("waits.index(shortest)", "max(range(others + 1), key=lambda r: begun[r])")],
     "moments on different ranks are compared"),
    (NAME, "the longest step", [("waits.index(shortest)",
     "max(range(others + 1), key=lambda r: finished[r][-1] - finished[r][0])")], "step takes the same time"),
    (NAME, "without the first step", [(MEAN, "mean([stop - start for start, stop in zip(*times)][1:])")],
     "the wait in the first step is left out"),
    (NAME, "the median", [("from statistics import mean", "from statistics import median as mean")], "the median wait"),
    (NAME, "the last of equal ranks", [("waits.index(shortest)", "others - waits[::-1].index(shortest)")],
     "the lowest of them counts"),
    (NAME, "no limit", [(LIMIT, "len(waits) == 1")], "a rank is named although the waits differ by at most 10%"),
    (NAME, "exactly the limit", [(LIMIT, LIMIT.replace("<=", "<"))], "exactly 10% of the time per step"),
    (NAME, "n steps", [(STEPS, "len(finished[0])")], "in n steps there are n − 1 times"),
    (NAME, "10 ms", [("0.1 * per_step", "10")], "10 ms are the limit here"),
    (NAME, "the wait alone", [(LIMIT, "max(waits) <= 0.1 * per_step")], "the longest wait itself is compared with 10%"),
    (NAME, "the straggler counts", [("others = len(waits) - 1", "others = len(waits)")],
     "the straggler itself is counted"),
    (NAME, "added up", [(WASTE, WASTE.replace(" / others", ""))], "waits are added up; take their mean"),
    (NAME, "the largest difference", [(WASTE, "max(waits) - shortest")], "this is the longest wait minus the shortest"),
    (NAME, "swapped", [(f"waits.index(shortest), {WASTE}", f"{WASTE}, waits.index(shortest)")],
     "the rank is 20.0, expected one of 0 to 3(.|\n)*the order is .rank, waste"),
    (NAME, "None twice", [("return None\n", "return None, 0\n")], "the rank is None"),
    (NAME, "one rank divides by 0", [("    if max(waits)", "    1 / (len(waits) - 1)\n    if max(waits)")],
     "a single rank waits for nobody"),
    (NAME, "no return", [("return waits.index", "waits.index")], "every answer is None: a return is missing"),
]  # fmt: skip
BY_NUMPY = """    import numpy as np

    waits = (np.array(finished) - np.array(begun)).mean(axis=1)
    per_step = np.diff(finished, axis=1).mean()
    if np.ptp(waits) * 10 <= per_step:
        return None
    rank = np.argmin(waits)
    return rank, np.delete(waits, rank).mean() - waits[rank]
"""
BY_TOTALS = """    steps = len(begun[0])
    total = [sum(map(float.__sub__, stop, start)) for start, stop in zip(begun, finished)]
    order = sorted(range(len(total)), key=lambda rank: (total[rank], rank))
    gaps = [b - a for a, b in zip(finished[-1], finished[-1][1:])]
    if (total[order[-1]] - total[order[0]]) / steps > sum(gaps) / len(gaps) / 10:
        longer = [total[rank] - total[order[0]] for rank in order[1:]]
        return [order[0], sum(longer) / len(longer) / steps]
"""
DIFFERENT: list = [(NAME, [(BODY, BY_NUMPY)]), (NAME, [(BODY, BY_TOTALS)])]
