"""Exercise 1 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "stage_spans"
BODY_START, BODY_END = "    count = len(costs)\n", "    return list(best(0, stages)[1])\n"
RETURN = "return list(best(0, stages)[1])"
STOPS = "range(start + 1, count - left + 2)"

BUGS: list = [
    (NAME, "sizes, not spans", [(RETURN, "return [stop - start for start, stop in best(0, stages)[1]]")],
     "instead of a list of pairs"),
    (NAME, "no return", [(RETURN, "best(0, stages)")], "return the list"),
    (NAME, "empty stages", [("range(start + 1, count - left + 2)", "range(start, count + 1)")], "holds no part"),
    (NAME, "stop inclusive", [(RETURN, "return [(start, stop - 1) for start, stop in best(0, stages)[1]]")],
     "stop is the part after it"),
    (NAME, "one stage fewer", [("if left == 1:", "if left <= 2:")], "spans for"),
    (NAME, "the cheapest stage", [("max(sum(costs[start:stop]), cost)", "-min(sum(costs[start:stop]), -cost)"),
                                  ("return sum(costs[start:]), (", "return -sum(costs[start:]), (")],
     "as expensive as possible; the most expensive one decides"),
    (NAME, "overlapping spans", [(RETURN, "return [(max(0, start - 1), stop) for start, stop in best(0, stages)[1]]")],
     "should start at part"),
    (NAME, "the last stage stops early", [(RETURN, RETURN + "[:-1] + [(count - 1, count - 1 + (stages == 1))]")],
     "holds no part|starts at part"),
    (NAME, "costs changed", [(BODY_START, BODY_START + "    costs.append(0)\n")], "must not change its arguments"),
]  # fmt: skip

ALL_CUTS = """    from itertools import combinations, pairwise

    cuts = (list(pairwise((0, *cut, len(costs)))) for cut in combinations(range(1, len(costs)), stages - 1))
    return min(cuts, key=lambda spans: max(sum(costs[a:b]) for a, b in spans))
    ### END SOLUTION
"""
# Fill each stage up to a limit, and take the smallest limit that needs no more stages than there are.
BY_LIMIT = """    def filled(limit):
        cuts, total = [], 0
        for i, cost in enumerate(costs):
            if i and (total + cost > limit or len(costs) - i == stages - 1 - len(cuts)):
                cuts.append(i)
                total = 0
            total += cost
        return [*zip([0, *cuts], [*cuts, len(costs)])]

    limits = sorted({sum(costs[a:b]) for a in range(len(costs)) for b in range(a + 1, len(costs) + 1)})
    for limit in limits:
        spans = filled(limit)
        if len(spans) == stages and all(sum(costs[a:b]) <= limit for a, b in spans):
            return spans
    ### END SOLUTION
"""
DIFFERENT = [
    (NAME, [(BODY_START, ALL_CUTS)]),
    (NAME, [(BODY_START, BY_LIMIT)]),
    (NAME, [(RETURN, "return [list(span) for span in best(0, stages)[1]]")]),
]
