"""Lab 10, exercise 1: cut a model into stages so that the most expensive stage is as cheap as possible."""

from functools import cache


def stage_spans(costs, stages):
    """Return [(start, stop), …], one pair per stage: the stage holds the parts start … stop − 1.

    costs: the time of each part of the model, in order: the embedding, every block, the output.
    Parts keep their order, every part belongs to one stage, and every stage holds at least one part
    (1 ≤ stages ≤ len(costs)). The most expensive stage is as cheap as possible; if several cuts are
    equally good, return any of them. A model has at most 18 parts here. Do not change costs.
    """
    # 1. Where may the first stage stop, so that every later stage still gets a part?
    # 2. For each of these stops, how cheap can the most expensive of the later stages be?
    ### BEGIN SOLUTION
    count = len(costs)

    @cache
    def best(start, left):
        """Return (cost of the most expensive stage, spans) for the parts from start on."""
        if left == 1:
            return sum(costs[start:]), ((start, count),)
        options = []
        for stop in range(start + 1, count - left + 2):
            cost, spans = best(stop, left - 1)
            options.append((max(sum(costs[start:stop]), cost), ((start, stop), *spans)))
        return min(options)

    return list(best(0, stages)[1])
    ### END SOLUTION
