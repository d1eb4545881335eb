"""Test that all ranks gather ahead in the same order during a forward pass, whatever modules each has called."""

from types import SimpleNamespace

import torch
from torch import nn

from labs_helpers.data_parallel.zero.gather import ParameterGather


class Group:
    """A communication that notes its gathers. others: what some other rank says in an all-reduce of flags."""

    device = "cpu"

    def __init__(self, others=()):
        self.others, self.log, self.asked = others, [], 0

    def all_reduce(self, flags, op):
        assert op == "max"
        self.asked += 1
        return torch.maximum(flags, torch.tensor(self.others, dtype=flags.dtype)) if self.others else flags

    def start_gather(self, whole, shard):
        self.log.append(f"start {whole}")
        return SimpleNamespace(wait=lambda: self.log.append(f"wait {whole}"))


class Bucket:
    """Of one parameter, by its name."""

    shard = None

    def __init__(self, name, parameter, group):
        self.whole, self.parameters, self.group = name, [parameter], group


class Model(nn.Module):
    """Of three layers, the last of which is only multiplied with."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.output = (nn.Linear(2, 2, bias=False) for _ in range(3))

    def forward(self, x):
        return nn.functional.linear(self.second(self.first(x)), self.output.weight)


def made(group, overlap=True):
    """(model, gather), where each layer is a bucket, in the order of the backward pass."""
    model = Model()
    gather = ParameterGather(model, overlap)
    names = ("output", "second", "first")
    gather.follow([Bucket(name, getattr(model, name).weight, group) for name in names])
    return model, gather


def test_what_only_its_parent_reads_is_gathered_first_and_the_rest_beside_the_forward_pass():
    group = Group()
    model, gather = made(group)
    for _ in range(2):
        model(torch.zeros(1, 2))
        group.log.clear()
        gather.start()
        assert group.log == ["start output", "start first", "start second", "wait output"]
        group.log.clear()
    model(torch.zeros(1, 2))
    assert group.log == ["wait first", "wait second"] and group.asked == 1


def test_a_rank_that_called_more_keeps_the_order_of_the_others_and_waits_for_less():
    group = Group(others=[1, 1, 0])
    model, gather = made(group)
    model(torch.zeros(1, 2))
    gather.start()
    assert group.log == ["start second", "start output", "start first", "wait output"]


def test_modules_called_later_do_not_change_the_order():
    group = Group()
    model, gather = made(group)
    model.first(torch.zeros(1, 2))
    gather.start()
    starts = [line for line in group.log if line.startswith("start")]
    assert starts == ["start second", "start output", "start first"]
    group.log.clear()
    model(torch.zeros(1, 2))
    model.output(torch.zeros(1, 2))
    group.log.clear()
    gather.start()
    assert group.log == starts


def test_without_overlap_nobody_is_asked():
    group = Group()
    _, gather = made(group, overlap=False)
    gather.start()
    assert group.asked == 0 and group.log[3:] == ["wait output", "wait second", "wait first"]
