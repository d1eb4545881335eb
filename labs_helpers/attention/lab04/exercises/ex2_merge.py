"""Lab 04, exercise 2: two partial softmaxes joined into one."""

import torch


def merge(m1, l1, o1, m2, l2, o2):
    """Two partial softmaxes, over disjoint sets of keys, joined into one: (m, l, o).

    A part has seen some of the keys, with scores s (a row a query) and values v. It holds
    m: (rows,), the largest s; l: (rows,), Σ exp(s − m); and o: (rows, D), Σ exp(s − m)·v, which
    is not yet divided by l. A part that has seen no key is m = −inf, l = 0, o = 0.
    The six tensors stay as they are; the result is three new ones.
    """
    # 1. The maximum over both parts.
    # 2. Each part's factor: what turns its exp(s − m1), or exp(s − m2), into exp(s − m).
    #    Where both parts are empty that would be exp(−inf − (−inf)): subtract 0 instead.
    # 3. Rescale and add: l, and o, whose factors need a column of their own, [:, None].
    ### BEGIN SOLUTION
    m = torch.maximum(m1, m2)
    shift = torch.where(m == float("-inf"), 0.0, m)
    factor1, factor2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    return m, factor1 * l1 + factor2 * l2, factor1[:, None] * o1 + factor2[:, None] * o2
    ### END SOLUTION
