"""Test the reference of exercise 2: parts merged in any order give the softmax of the whole row."""

from functools import reduce
from itertools import permutations

import torch

from labs_helpers.attention.lab04 import exercises


def test_parts_merged_in_any_order_are_the_softmax_of_the_whole_row():
    generator = torch.Generator().manual_seed(0)
    scores = 200 * torch.randn(8, 60, generator=generator, dtype=torch.float64)
    values = torch.randn(60, 16, generator=generator, dtype=torch.float64)
    parts = []
    for keys in (slice(7), slice(7, 20), slice(20, 60)):
        m = scores[:, keys].amax(1)
        p = torch.exp(scores[:, keys] - m[:, None])
        parts.append((m, p.sum(1), p @ values[keys]))
    for order in permutations(parts):
        m, total, o = reduce(lambda first, second: exercises.merge(*first, *second), order)
        torch.testing.assert_close(o / total[:, None], torch.softmax(scores, 1) @ values)
        torch.testing.assert_close(m + total.log(), scores.logsumexp(1))
