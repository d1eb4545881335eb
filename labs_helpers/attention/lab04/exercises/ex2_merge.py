"""Lab 04, exercise 2: merge two partial softmaxes."""

import torch


def merge(m1, l1, o1, m2, l2, o2):
    """Merge two partial softmaxes over disjoint sets of keys into one, (m, l, o).

    A part has seen some of the keys, with scores s (one row per query) and values v. It holds
    m: (rows,), the largest s; l: (rows,), Σ exp(s − m); and o: (rows, D), Σ exp(s − m)·v, not yet
    divided by l. A part that has seen no key has m = −inf, l = 0 and o = 0.
    Leave the six inputs unchanged and return three new tensors.
    """
    # 1. Take the maximum over both parts.
    # 2. Find the factor that turns each part's exp(s − m1) or exp(s − m2) into exp(s − m).
    #    Where both parts are empty, this would be exp(−inf − (−inf)): subtract 0 instead.
    # 3. Rescale and add the parts of l, then those of o. For o, write factor[:, None].
    ### BEGIN SOLUTION
    m = torch.maximum(m1, m2)
    shift = torch.where(m == float("-inf"), 0.0, m)
    factor1, factor2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    return m, factor1 * l1 + factor2 * l2, factor1[:, None] * o1 + factor2[:, None] * o2
    ### END SOLUTION
