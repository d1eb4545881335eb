"""Test that backward passes, wrappers and ZeRO stages on practice ranks agree bit for bit with one process."""

import threading

import pytest
import torch
import torch.distributed as dist

from labs_helpers.course.verdict import one_thread
from labs_helpers.data_parallel.zero.state import whole_state
from labs_helpers.practice import RankFailed
from labs_helpers.practice.process_groups import mark, practice_process_groups
from tests.data_parallel import models, wrapper_cases
from tests.data_parallel.zero import cases
from tests.data_parallel.zero import models as zero_models


class SumOfRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


def step(group, rank):
    """Communication in each kind of hook, at once and later, while the other ranks are in backward as well."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3))).double()
    works, threads, grad_modes = [], set(), set()

    def all_reduce(x, later):
        threads.add(threading.get_ident())
        work = dist.all_reduce(x, group=group, async_op=later)
        works.extend([work] * later)

    def full_backward(module, grad_input, grad_output):
        grad_modes.add(torch.is_grad_enabled())
        dist.barrier(group=group)

    for i, p in enumerate(model.parameters()):
        p.register_post_accumulate_grad_hook(lambda p, later=i % 2: all_reduce(p.grad, bool(later)))
    model[1].register_full_backward_hook(full_backward)
    x = torch.full((2, 3), rank + 1.0, dtype=torch.float64)
    h = model(SumOfRanks.apply(x.requires_grad_(), group))
    h.register_hook(lambda gradient: dist.barrier(group=group))
    with torch.no_grad():
        mark(group, "backward begins")  # grad mode is each rank's own, also where it waits
        dist.barrier(group=group)
        assert not torch.is_grad_enabled()
    h.square().sum().backward()
    mark(group, "backward ends")
    for work in works:
        work.wait()
    assert threads == {threading.get_ident()} and grad_modes == {False} and torch.is_grad_enabled()
    return [p.grad for p in model.parameters()], x.grad


def test_hooks_communicate_on_the_rank_s_own_thread():
    run = practice_process_groups(step, 3)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3))).double()
    x = torch.cat([torch.full((2, 3), rank + 1.0, dtype=torch.float64) for rank in range(3)]).requires_grad_()
    model(x).square().sum().backward()
    for rank, (gradients, of_x) in enumerate(run.results):
        assert all(torch.allclose(g, p.grad) for g, p in zip(gradients, model.parameters(), strict=True))
        assert torch.allclose(of_x, sum(x.grad.chunk(3)))
        names = [call.name for call in run.started_between(rank, "backward begins", "backward ends")]
        assert names.count("all_reduce") == 7 and names.count("barrier") == 3
        assert run.log_of(rank)[-1] == "done all_reduce"
    assert practice_process_groups(step, 3).log_of(1) == run.log_of(1)


def test_an_error_in_a_hook_ends_the_ranks_that_wait_in_theirs():
    def failing(group, rank):
        layer = torch.nn.Linear(3, 3)

        def hook(p):
            if rank == 2:
                raise KeyError("a hook's own")
            dist.all_reduce(p.grad, group=group)

        layer.weight.register_post_accumulate_grad_hook(hook)
        layer(torch.ones(2, 3)).sum().backward()

    threads = threading.active_count()
    with pytest.raises(RankFailed, match='rank 2 raised KeyError: "a hook\'s own"'):
        practice_process_groups(failing, 3)
    assert threading.active_count() == threads


@pytest.mark.parametrize("wrapper", ["naive", "overlapped", "bucketed"])
def test_wrappers_train_as_one_process(wrapper):
    def train(group, rank):
        ddp = wrapper_cases.wrap(wrapper, models.make(models.EVERYTHING, seed=rank), group)
        return models.on_ranks(ddp, models.EVERYTHING, "AdamW", rank)

    with one_thread():
        run = practice_process_groups(train, 2)
        expected = models.on_one_process(models.EVERYTHING, "AdamW", 2)
    assert [wrapper_cases.largest(mine, expected) for mine in run.results] == [0, 0]
    assert run.never_waited == [] and len(run.of(0)) > 20


@pytest.mark.parametrize("stage", ["1", "1 all_reduce", "2", "3"])
def test_zero_trains_as_one_process(stage):
    def train(group, rank):
        model = zero_models.Net(seed=rank)
        zero = zero_models.make(stage, model, "AdamW", zero_models.param_groups(model), group=group)
        for number in range(3):
            zero_models.loss_of(model, zero_models.data(number, 4)[0][rank]).backward()
            zero.step()
            zero.zero_grad()
        return whole_state(zero)

    with one_thread():
        run = practice_process_groups(train, 4)
        weights, states = cases.plainly("AdamW", 4)
    assert run.never_waited == []
    for state in run.results:
        assert zero_models.largest_error(state["model"], weights) == 0
        assert zero_models.largest_error(zero_models.by_entry(state["optimizer"]), zero_models.by_entry(states)) == 0
