"""Test mistakes on practice ranks of torch.distributed: they fail in the same way every time, with an explanation."""

import threading

import pytest
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.practice import Deadlock, RankFailed
from labs_helpers.practice.process_groups import mark, practice_process_groups

pytestmark = pytest.mark.filterwarnings("ignore:`torch.distributed:FutureWarning")
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def failure(function, size=2, **settings):
    with pytest.raises(RankFailed) as failed:
        practice_process_groups(function, size, **settings)
    return f"{type(failed.value.error).__name__}: {failed.value.error}"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(0, 9), st.sampled_from(DTYPES), st.integers(0, 99))
def test_until_wait_there_is_nan_and_the_inputs_stay(size, n, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    given = torch.randn(size, n * size, generator=generator).to(dtype)

    def step(group, rank):
        x, out, whole = given[rank].clone(), torch.zeros(n, dtype=dtype), torch.zeros(n * size * size, dtype=dtype)
        work = dist.all_reduce(x, group=group, async_op=True)
        scattered = dist.reduce_scatter_tensor(out, given[rank].clone(), group=group, async_op=True)
        mine = given[rank].clone()
        gathered = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)
        early = all(torch.isnan(each).all() for each in (x, out, whole)) and torch.equal(mine, given[rank])
        for each in (gathered, work, scattered):
            each.wait()
        return early, x, out, whole

    total = given[0]
    for other in given[1:]:  # in the order of the ranks, in their dtype
        total = total + other
    for rank, (early, x, out, whole) in enumerate(practice_process_groups(step, size).results):
        assert early and torch.equal(x, total) and torch.equal(whole, given.flatten())
        assert torch.equal(out, total[n * rank : n * (rank + 1)])


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.div_(2),
        lambda x: x.data.mul_(0.5),
        lambda x: x.zero_(),
        lambda x: x[1:2].add_(1),
        lambda x: x.copy_(torch.ones(3)),
    ],
)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64, torch.uint8])
def test_a_tensor_that_is_changed_too_early(change, dtype):
    def step(group, rank):
        x = torch.ones(3, dtype=dtype)
        work = dist.all_reduce(x, group=group, async_op=True)
        if dtype.is_floating_point or change.__code__.co_names[-1] not in ("div_", "mul_"):
            change(x)
        else:
            x //= 2
        work.wait()

    assert "TouchedTooEarly: rank 0 changed a tensor of all_reduce between its start" in failure(step)


def test_the_shard_of_a_gather_and_the_root_of_a_broadcast_can_be_read_and_not_changed():
    def step(group, rank, touch):
        whole = torch.arange(4.0)
        mine = whole[2 * rank : 2 * rank + 2]
        work = dist.all_gather_into_tensor(whole, mine, group=group, async_op=True)
        assert mine.tolist() == [2.0 * rank, 2.0 * rank + 1] and whole.isnan().sum() == 2
        x = torch.full((2,), float(rank))
        sent = dist.broadcast(x, group_src=0, group=group, async_op=True)
        assert x.tolist() == [0, 0] if rank == 0 else x.isnan().all()
        if touch:
            (mine if touch == "shard" else x).add_(1)
        work.wait(), sent.wait()
        return whole.tolist() + x.tolist()

    assert practice_process_groups(step, 2, "").results == [[0, 1, 2, 3, 0, 0]] * 2
    for touch, name in (("shard", "all_gather_into_tensor"), ("x", "broadcast")):
        assert f"TouchedTooEarly: rank 0 changed a tensor of {name}" in failure(lambda g, r, t=touch: step(g, r, t))


def test_a_forgotten_wait_is_recorded_and_polling_ends():
    def step(group, rank):
        works = [dist.all_reduce(torch.ones(3), group=group, async_op=True) for _ in range(3)]
        works[1].wait()
        while not works[2].is_completed():
            pass

    run = practice_process_groups(step, 2)
    assert run.never_waited == [f"rank {rank}: all_reduce of 3 × float32, async" for rank in (0, 1)]


def test_the_record_says_what_and_when():
    def step(group, rank):
        mark(group, "begin")
        work = dist.all_reduce(torch.ones(3), dist.ReduceOp.AVG, group=group, async_op=True)
        mark(group, "end")
        work.wait()
        dist.broadcast(torch.ones(2, 2, dtype=torch.bfloat16), group_src=1, group=group)
        dist.all_gather_into_tensor(torch.ones(4), torch.ones(2), group=group)

    run = practice_process_groups(step, 2)
    reduced, sent, gathered = run.of(1)
    assert (reduced.op, reduced.nbytes, reduced.asynchronous, reduced.waited) == ("AVG", 12, True, True)
    assert (sent.root, sent.elements, sent.nbytes, sent.dtype, sent.asynchronous) == (1, 4, 8, "bfloat16", False)
    assert (gathered.nbytes, gathered.number, gathered.ranks) == (16, 2, (0, 1))
    assert run.log_of(1)[:5] == ["begin", "start all_reduce", "end", "wait all_reduce", "done all_reduce"]
    assert run.started_between(1, "begin", "end") == [reduced] and run.waited_between(1, "begin", "end") == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g, r: dist.all_reduce(torch.ones(2 + r), group=g), "elements is 3 on rank 1 and 2 on rank 0"),
        (lambda g, r: dist.all_reduce(torch.ones(2).to(DTYPES[r]), group=g), "dtype is float64 on rank 1 and float32"),
        (
            lambda g, r: dist.all_reduce(torch.ones(2), [dist.ReduceOp.SUM, dist.ReduceOp.AVG][r], group=g),
            "op is AVG on rank 1 and SUM on rank 0",
        ),
        (lambda g, r: dist.broadcast(torch.ones(2), src=r, group=g), "src is 1 on rank 1 and 0 on rank 0"),
        (
            lambda g, r: dist.barrier(group=g) if r else dist.all_reduce(torch.ones(2), group=g),
            "rank 1 calls barrier where rank 0, of the same group, calls all_reduce",
        ),
    ],
)
def test_collectives_that_do_not_match(call, said):
    found = failure(call)
    assert found.startswith("Mismatch") and said in found


def test_a_deadlock_names_the_line():
    def step(group, rank):
        if rank:
            dist.all_reduce(torch.ones(2), group=group)

    with pytest.raises(Deadlock, match="rank 1 waits in all_reduce of ranks 0, 1 for 0, which has ended") as deadlock:
        practice_process_groups(step, 2)
    assert "in step, line" in str(deadlock.value) and deadlock.value.run.log_of(1) == [
        "start all_reduce",
        "wait all_reduce",
    ]


def test_groups_have_ranks_of_their_own():
    def step(group, rank):
        x = torch.tensor(float(rank))
        dist.all_reduce(x, group=group)
        dist.broadcast(x, src=rank % 2, group=group)
        return x.item(), dist.get_rank(group), dist.get_world_size(group), dist.get_rank(), dist.get_world_size()

    results = practice_process_groups(step, 4, groups=[[0, 2], [3, 1]]).results
    assert results == [(2, 0, 2, 0, 4), (4, 1, 2, 1, 4), (2, 1, 2, 2, 4), (4, 0, 2, 3, 4)]
    with pytest.raises(ValueError, match="do not have each of 4 ranks once"):
        practice_process_groups(step, 4, groups=[[0, 1], [1, 2]])
    said = failure(lambda g, r: dist.broadcast(torch.ones(1), src=0, group=g), 4, groups=[[0, 2], [1, 3]])
    assert "Global rank 0 is not part of group <practice group of ranks 1, 3>" in said


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: dist.all_reduce(torch.ones(2)), "NoGroup: a collective without group="),
        (lambda g: dist.barrier(), "NoGroup"),
        (lambda g: dist.broadcast(torch.ones(2), 0), "NoGroup"),
        (lambda g: dist.new_group([0, 1]), "there is no new_group"),
        (lambda g: dist.isend(torch.ones(2), 0, group=g), "practice ranks know all_reduce"),
        (lambda g: dist.all_reduce(torch.ones(2), group=g, async_op=True).get_future().then(id), "then() is not there"),
        (lambda g: dist.all_reduce(torch.ones(4)[::2], group=g), "tensors must be contiguous"),
        (lambda g: dist.all_reduce(torch.ones(4, 4)[:, :2], group=g), "tensors must be contiguous"),
        (lambda g: dist.all_gather_into_tensor(torch.ones(4, 2), torch.ones(2, 2).t(), group=g), "must be contiguous"),
        (lambda g: dist.reduce_scatter_tensor(torch.ones(2), torch.ones(8)[::2], group=g), "must be contiguous"),
    ],
)
def test_what_is_not_there(call, said):
    assert said in failure(lambda group, rank: call(group))


def test_nothing_is_left_behind():
    before, state = c10d._world, torch.get_rng_state()

    def step(group, rank):
        first = torch.rand(1).item()
        dist.barrier(group=group)
        return first, torch.rand(1).item()

    assert len(set(practice_process_groups(step, 3).results)) == 1  # as if each were alone
    failure(lambda g, r: dist.barrier())
    assert c10d._world is before and not dist.is_initialized() and torch.equal(torch.get_rng_state(), state)


def test_other_threads_keep_the_process_group_that_they_have():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    seen = []

    def step(group, rank):
        thread = threading.Thread(target=lambda: seen.append(dist.get_world_size()))
        thread.start(), thread.join()
        return dist.get_rank(), dist.get_world_size()

    try:
        assert practice_process_groups(step, 2).results == [(0, 2), (1, 2)]
        assert seen == [1, 1] and dist.get_world_size() == 1
    finally:
        dist.destroy_process_group()
