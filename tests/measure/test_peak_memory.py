"""Test the count of bytes alive at the same time."""

import torch

from labs_helpers.measure.peak_memory import peak_memory


def test_what_is_freed_makes_room():
    x = torch.zeros(100)

    def chain(x):
        y = x + 1  # 400 bytes
        y = y + 1  # 800 while both are alive
        return y + 1  # the first is gone

    value, peak = peak_memory(chain, x)
    assert value.sum() == 300 and peak == 800


def test_inputs_and_views_are_not_counted():
    x = torch.zeros(10, 10)
    assert peak_memory(lambda x: x.t().reshape(10, 10).flatten()[:5], x)[1] == 400  # reshape copies
    assert peak_memory(lambda x: x.add_(1).view(-1), x)[1] == 0


def test_what_is_kept_stays_counted():
    kept = []
    _, peak = peak_memory(lambda x: [kept.append(x * i) for i in range(4)], torch.zeros(25))
    assert peak == 400
