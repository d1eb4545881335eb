"""Exercise 9 of lab 11: mistakes that its check has to name, and right answers written differently."""

import inspect

from tests.clinic.lab11.exercises import ex9_smallest_change

NAME = "smallest_change"
BODY = inspect.getsource(ex9_smallest_change).split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
FASTEST = "return set(min(ms, key=ms.get))"
SIZES = "for size in range(len(changes)):"
GREEDY = """    chosen, ms = set(), measure(set())
    while ms > goal and len(chosen) < len(changes):
        times = {change: measure({*chosen, change}) for change in changes if change not in chosen}
        best = min(times, key=times.get)
        chosen, ms = {*chosen, best}, times[best]
    return chosen if ms <= goal else None
"""
STOPS = """    chosen, ms = set(), measure(set())
    while ms > goal:
        left = sorted(set(changes) - chosen, reverse=True)
        times = {change: measure(chosen | {change}) for change in left}
        best = min(times, key=times.get, default=None)
        if best is None or times[best] == ms:
            return None
        chosen, ms = chosen | {best}, times[best]
    return chosen
"""
HELPFUL = """    before = measure(set())
    return {change for change in changes if measure({change}) < before}
"""

BUGS: list = [
    (NAME, "greedy", [(BODY, GREEDY)], "changes are added one at a time"),
    (NAME, "greedy, while it helps", [(BODY, STOPS)], "changes are added one at a time"),
    (NAME, "all that help", [(BODY, HELPFUL)], "all changes that gain something alone are returned"),
    (NAME, "all", [(SIZES, "for size in []:")], "the fastest of all sets is returned"),
    (NAME, "the first set", [(FASTEST, "return set(next(one for one in ms if ms[one] <= goal))")],
     "the first set that reaches the goal is returned"),
    (NAME, "less than the goal", [("<= goal", "< goal")], "a step of exactly `goal` ms reaches the goal"),
    (NAME, "no empty set", [(SIZES, "for size in range(1, len(changes)):")], "the job as it is may reach the goal"),
    (NAME, "None for the empty set", [(FASTEST, FASTEST + " or None")], "the job as it is may reach the goal"),
    (NAME, "all, though they miss the goal", [("        return None\n", "        return set(changes)\n")],
     "if even all changes miss the goal, the answer is None"),
    (NAME, "all changes twice", [(SIZES, "for size in range(len(changes) + 1):")],
     "{bf16, buckets, more workers} is measured twice"),
    (NAME, "the chosen set again", [(FASTEST, "best = set(min(ms, key=ms.get))\n            measure(best)\n"
     "            return best")], "is measured twice(.|\n)*One thing to try: keep the time"),
    (NAME, "all sets", [("    everything = ", "    [measure(one) for n in range(1, len(changes)) "
     "for one in combinations(changes, n)]\n    everything = ")], "the right answer, but (.|\n)* is measured twice"),
    (NAME, "not all changes first", [("    if everything > goal:\n        return None\n", ""),
     ("    return set(changes)", "    return set(changes) if everything <= goal else None")],
     "after 8 measurements; the limit is 1 here"),
    (NAME, "one name", [(FASTEST, "return min(ms, key=ms.get)[0] if size == 1 else set(min(ms, key=ms.get))")],
     "a set with a single name is"),
    (NAME, "a name for a set", [("for chosen in combinations(changes, size)}", "for chosen in combinations(changes, "
     "size)} | {name: measure(name) for name in changes}")], "takes a set of names, not the name"),
    (NAME, "times", [(FASTEST, "return [min(ms.values())]")], "100|is not among the changes"),
]  # fmt: skip
RECURSIVE = """    if measure(tuple(changes)) > goal:
        return None
    known = {frozenset(changes): goal + 1}
    level = {frozenset()}
    while level != {frozenset(changes)}:
        best = None
        for chosen in level:
            known[chosen] = measure(chosen)
            if known[chosen] <= goal and (best is None or known[chosen] < known[best]):
                best = chosen
        if best is not None:
            return best
        level = {chosen | {change} for chosen in level for change in changes if change not in chosen}
    return frozenset(changes)
"""
BY_BITS = """    count = len(changes)
    sets = sorted(range(2**count), key=int.bit_count)
    names = lambda bits: [change for i, change in enumerate(changes) if bits >> i & 1]
    best = {sets[-1]: measure(names(sets[-1]))}
    if best[sets[-1]] > goal:
        return
    for bits in sets[:-1]:
        found = min(best, key=lambda one: (one.bit_count(), best[one]))
        if bits.bit_count() > found.bit_count():
            break
        ms = measure(names(bits))
        if ms <= goal:
            best[bits] = ms
    return names(min(best, key=lambda one: (one.bit_count(), best[one])))
"""
DIFFERENT: list = [(NAME, [(BODY, RECURSIVE)]), (NAME, [(BODY, BY_BITS)])]
