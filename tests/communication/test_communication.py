"""Compare each implementation with results that every rank can compute from a seed, and test the counts."""

import functools
import math

import pytest
import torch

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.communication.timed import TimedCommunication
from labs_helpers.practice.groups import practice_groups
from tests.tensor_parallel import ranks as on_ranks


def _all_operations(way, tp, comm):
    """Everything that went wrong, and how many comparisons there were."""
    import torch

    wrong, compared = [], 0
    group, _ = on_ranks.groups(comm, way, tp)
    rank, size = comm.rank % tp, tp
    generator = torch.Generator().manual_seed(comm.rank // tp)  # the same on every rank of a group

    def compare(name, found, expected):
        nonlocal compared
        compared += 1
        if not (found.dtype == expected.dtype and found.is_contiguous() and torch.equal(found, expected)):
            wrong.append(name)

    def owned(*tensors):
        return {tensor.untyped_storage().data_ptr() for tensor in tensors}

    if (group.rank, group.size) != (rank, size):
        wrong.append((way, "rank and size"))
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64):
        for shape in ((), (0, 12), (2, 12, 12)):
            # Small integers: exact in every dtype and in every order.
            everyone = torch.randint(-4, 5, (size, *shape), generator=generator).to(dtype)
            mine, name = everyone[rank].clone(), (way, str(dtype), shape)
            compare(("all_reduce", *name), group.all_reduce(mine), everyone.sum(0, dtype=dtype))
            compare(("max", *name), group.all_reduce(mine, "max"), everyone.amax(0))
            for op, expected in (("sum", everyone.sum(0, dtype=dtype)), ("max", everyone.amax(0))):
                overwritten = mine.clone()
                group.all_reduce(overwritten, op, in_place=True)
                compare(("in place", op, *name), overwritten, expected)
            pending = mine.clone()
            request = group.start_all_reduce(pending)
            request.poll()
            request.wait()
            compare(("start_all_reduce", *name), pending, everyone.sum(0, dtype=dtype))
            sent = mine.clone()
            group.broadcast(sent, size - 1)
            compare(("broadcast", *name), sent, everyone[size - 1])
            for dim in range(-1, len(shape)) if shape else ():
                compare(("all_gather", dim, *name), group.all_gather(mine, dim), torch.cat(list(everyone), dim))
                if shape[dim] % size == 0:
                    expected = everyone.sum(0, dtype=dtype).chunk(size, dim)[rank].contiguous()
                    compare(("reduce_scatter", dim, *name), group.reduce_scatter(mine, dim), expected)
            if len(shape) == 3:
                turned = mine.transpose(0, 2).contiguous().transpose(0, 2)  # not contiguous
                compare(("strided", *name), group.all_reduce(turned), everyone.sum(0, dtype=dtype))
            compare(("input", *name), mine, everyone[rank])
            for new in (group.all_reduce(mine), group.all_gather(mine[None]), group.reduce_scatter(everyone)):
                if new.numel() and new.untyped_storage().data_ptr() in owned(mine, everyone):
                    wrong.append(("shares memory", *name))
    return wrong, compared


def _counted(way, tp, comm):
    import torch

    group, _ = on_ranks.groups(comm, way, tp)
    x = torch.ones(2, 12, 24)  # 2304 bytes, which 2 and 4 ranks divide
    results = []
    for call in (
        lambda: group.all_reduce(x),
        lambda: group.start_all_reduce(x).wait(),
        lambda: group.all_gather(x[:, : 12 // tp], 1),
        lambda: group.reduce_scatter(x, 1),
        lambda: group.broadcast(x),
        lambda: group.all_reduce(x.bfloat16()),
    ):
        group.reset()
        call()
        results.append((group.bytes_sent, group.messages_sent, sum(group.payload.values()), sum(group.calls.values())))
    return results


def _ring(group):
    """Whether each rank gets its left neighbor's numbers, by dtype and shape; and what was counted."""
    import torch

    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    same = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in ((), (0, 3), (200, 300)):
            x, mine = torch.empty(shape, dtype=dtype), torch.full(shape, group.rank + 0.5, dtype=dtype)
            receiving = group.start_receive(x, left)
            group.all_reduce(mine)  # whose messages are not what is waited for
            for request in (group.start_send(mine, right), receiving):
                request.poll()
                request.wait()
            same.append(torch.equal(x, torch.full(shape, left + 0.5, dtype=dtype)))
    turned = torch.arange(6.0).reshape(2, 3).T  # not contiguous
    x = torch.empty(3, 2)
    group.reset()
    if group.rank % 2:
        group.receive(x, left)
        group.send(turned, right)
    else:
        group.send(turned, right)
        group.receive(x, left)
    same.append(torch.equal(x, turned))
    return all(same) and len(same) == 10, group.bytes_sent, group.messages_sent, dict(group.payload)


def _ring_of(way, comm):
    return _ring(on_ranks.world(comm, way))


def _three(way, comm):
    """The same on the first three ranks, and on the fourth alone."""
    some = comm.Split(color=comm.rank // 3, key=comm.rank)
    return _all_operations(way, some.size, some)


def _several_at_once(way, algorithm, comm):
    """Whether two large tensors are summed in the background while small ones are in the foreground."""
    import torch

    from labs_helpers.communication import connect

    group = connect(way, comm, algorithm)
    large = [torch.full((300_000,), float(group.rank + n)) for n in range(2)]
    requests = [group.start_all_reduce(x) for x in large]
    small = [group.all_reduce(torch.full((7,), float(n * group.rank)))[3].item() for n in range(30)]
    for request in requests:
        request.wait()
    ranks = sum(range(group.size))
    right = all((x == ranks + n * group.size).all() for n, x in enumerate(large))
    return right and small == [n * ranks for n in range(30)], group.bytes_sent > 0


def _rounded_once(way, comm):
    """The sum of a large number and two small ones, which are lost where float16 is rounded after each addition."""
    import torch

    from labs_helpers.communication import connect

    group = connect(way, comm)
    x = torch.tensor([[2048.0, 1, 1, 0][group.rank]], dtype=torch.float16)
    pending = x.clone()
    group.start_all_reduce(pending).wait()
    parts = group.reduce_scatter(x.expand(4))
    return group.all_reduce(x).item(), pending.item(), parts.item()


def _refusals(comm):
    import torch

    from labs_helpers.communication import connect

    messages = []
    group = connect("mpi", comm)
    for call in (
        lambda: group.reduce_scatter(torch.ones(3, 2)),
        lambda: group.part(torch.ones(3, 2), 0),
        lambda: group.start_all_reduce(torch.ones(2, 3).T),
        lambda: group.broadcast(torch.ones(2, 3).T),
        lambda: group.all_reduce(torch.ones(2, device="meta")),
        lambda: group.all_reduce(torch.ones(2), "min"),
        lambda: group.send(torch.ones(2), 4),
        lambda: group.receive(torch.ones(2), comm.rank),
        lambda: group.start_receive(torch.ones(2, 3).T, (comm.rank + 1) % 4),
        lambda: connect("smoke", comm),
    ):
        try:
            call()
            messages.append("nothing")
        except (ValueError, TypeError) as error:
            messages.append(str(error))
    return messages


GROUPS = [(way, tp) for way in on_ranks.WAYS for tp in (1, 2, 4)]

AT_ONCE = [("mpi", ""), ("own", "ring"), ("own", "shared_memory"), ("own", "hierarchical"), ("own", "auto")]


CASES = {("operations", *group): functools.partial(_all_operations, *group) for group in GROUPS}
CASES |= {("counted", *group): functools.partial(_counted, *group) for group in GROUPS}
CASES |= {("ring", way): functools.partial(_ring_of, way) for way in on_ranks.WAYS}
CASES |= {("three", way): functools.partial(_three, way) for way in ("mpi", "own")}
CASES |= {("at once", *pair): functools.partial(_several_at_once, *pair) for pair in AT_ONCE}
CASES |= {("rounded", way): functools.partial(_rounded_once, way) for way in ("mpi", "own")} | {"refusals": _refusals}


@pytest.mark.parametrize("way, tp", GROUPS)
def test_every_operation_and_dtype(results, way, tp):
    for of_rank in results:
        wrong, compared = of_rank["operations", way, tp]
        assert wrong == [] and compared > 100


@pytest.mark.parametrize("way", on_ranks.WAYS)
def test_messages_go_round_a_ring_and_are_counted(results, way):
    assert [of_rank["ring", way] for of_rank in results] == [(True, 24, 1, {"send": 24})] * 4


def test_messages_go_round_a_ring_of_practice_ranks():
    ran = practice_groups(lambda comm: _ring(PracticeCommunication(comm)), 4)
    assert ran.results == [(True, 24, 1, {"send": 24})] * 4 and not ran.never_waited


def test_a_stopwatch_times_messages():
    def exchange(comm):
        group = TimedCommunication(PracticeCommunication(comm))
        right, _, _, payload = _ring(group)
        return right, payload, len(group.intervals)  # a start and a wait of each message

    assert practice_groups(exchange, 2).results == [(True, {"send": 24}, 4)] * 2


def test_of_a_silent_message_there_are_zeros():
    group, x = SilentCommunication(1, 2), torch.full((3,), math.nan)
    group.send(x, 0)
    group.receive(x, 0)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("way, algorithm", AT_ONCE)
def test_what_runs_in_the_background_meets_nothing_else(results, way, algorithm):
    for of_rank in results:
        right, counted = of_rank["at once", way, algorithm]
        assert right and counted == (algorithm not in ("shared_memory", "hierarchical"))


@pytest.mark.parametrize("way", ["mpi", "own"])
def test_a_sum_in_float16_is_rounded_once(results, way):
    assert [of_rank["rounded", way] for of_rank in results] == [(2050, 2050, 2050)] * 4


@pytest.mark.parametrize("way", ["mpi", "own"])
def test_three_ranks_which_no_power_of_two_helps(results, way):
    assert [of_rank["three", way][0] for of_rank in results] == [[]] * 4


@pytest.mark.parametrize("way, tp", [group for group in GROUPS if group[1] > 1])
def test_what_is_counted_is_what_the_ring_sends(results, way, tp):
    once, message = 2304 * (tp - 1) // tp, tp - 1
    for rank, of_rank in enumerate(results):
        reduce, start, gather, scatter, broadcast, half = of_rank["counted", way, tp]
        assert reduce == start == (2 * once, 2 * message, 2304, 1)
        assert gather == scatter == (once, message, 2304, 1)
        assert broadcast[2:] == (2304, 1)
        if way == "own":  # down the binomial tree
            assert broadcast[1] == {2: [1, 0], 4: [2, 0, 1, 0]}[tp][rank % tp]
        # MPI cannot add bfloat16, and sends float32.
        assert half[0] == (once if way == "torch" else 2 * once)


@pytest.mark.parametrize("way", on_ranks.WAYS)
def test_one_rank_sends_nothing(results, way):
    assert all(of_rank["counted", way, 1] == [(0, 0, 0, 0)] * 6 for of_rank in results)


def test_refusals(results):
    expected = [
        "dimension 0 of (3, 2) cannot be cut into 4 equal parts",
        "dimension 0 of (3, 2) cannot be cut into 4 equal parts",
        "x is written to, so it has to be contiguous",
        "x is written to, so it has to be contiguous",
        "MPI reads the memory of CPU tensors; this one is on meta",
        "op is 'min', not one of sum, max",
        "to is 4, not another rank of a group of 4",
        "source is ",
        "x is written to, so it has to be contiguous",
        "way is 'smoke', not one of mpi, own, torch",
    ]
    for of_rank in results:
        messages = of_rank["refusals"]
        assert len(messages) == len(expected)
        assert all(m.startswith(e) for m, e in zip(messages, expected, strict=True)), messages
