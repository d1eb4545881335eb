"""What a check says of an answer that goes wrong on practice ranks: the line, and the cause."""

import re
import time

import pytest
import torch
import torch.distributed as dist

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import UNWAITED
from labs_helpers.course.verdict.practice_ranks import on_practice_ranks
from labs_helpers.practice.process_groups import practice_process_groups

ROOT = "broadcast needs the rank that sends"
LENGTH = "the whole tensor must be as long as the ranks' equal parts together"


def call(student, group, x):
    student(x, group)
    return x


def on_process_groups(student, own, unwaited=UNWAITED, **settings):
    settings |= {"ranks": practice_process_groups}
    return on_practice_ranks("a case", student, call, [(x,) for x in own], unwaited=unwaited, **settings)


def right(x, group):
    work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()


def some_ranks(x, group):
    if dist.get_rank(group) == 1:
        dist.all_reduce(x, group=group)


def other_order(x, group):
    calls = [lambda: dist.all_reduce(x, group=group), lambda: dist.broadcast(x, group_src=0, group=group)]
    for each in calls if dist.get_rank(group) else reversed(calls):
        each()


def too_early(x, group):
    work = dist.all_reduce(x, group=group, async_op=True)
    x /= 2
    work.wait()


MISTAKES = [
    (some_ranks, "a deadlock: rank 1 waits in all_reduce", "some ranks call it and others do not"),
    (other_order, "Mismatch: rank 1 calls all_reduce where rank 0", "depends on the rank"),
    (too_early, "TouchedTooEarly: rank 0 changed a tensor of all_reduce", "the tensor belongs to the collective"),
    (
        lambda x, g: dist.all_reduce(x, group=g, async_op=True),
        "is never waited for (and 1 more)",
        "keep every work",
    ),
    (lambda x, g: dist.all_reduce(x), "NoGroup", "group= is missing"),
    (lambda x, g: dist.all_reduce(x, group=g).wait(), "no attribute 'wait'", "returns None"),
    (lambda x, g: dist.all_reduce(None, group=g), "NoneType", "p.grad is None"),
    (lambda x, g: dist.all_reduce(x, op="sum", group=g), "'sum'", "op= takes a dist.ReduceOp"),
    (lambda x, g: dist.all_reduce(x, g), "incompatible function arguments", "the second positional argument is op"),
    (lambda x, g: dist.all_reduce(x[::2], group=g), "must be contiguous", "gaps in memory"),
    (lambda x, g: dist.broadcast(x, group=g), "Must specify", ROOT),
    (lambda x, g: dist.broadcast(x, src=5, group=g), "Global rank 5", "src= and dst= are ranks among all processes"),
    (lambda x, g: dist.broadcast(x, src=dist.get_rank(g), group=g), "src is 1 on rank 1", "name the same root"),
    (lambda x, g: dist.all_reduce(x[: 1 + dist.get_rank(g)], group=g), "elements is 2", "different sizes"),
    (
        lambda x, g: dist.all_reduce(x.to([x.dtype, torch.int64][dist.get_rank(g)]), group=g),
        "dtype is",
        "the same dtype",
    ),
    (lambda x, g: dist.reduce_scatter_tensor(x[:2].clone(), x[:3], group=g), "input has shape (3,)", LENGTH),
    (lambda x, g: dist.reduce_scatter_tensor(x[:1].clone(), x, group=g), "input has shape (4,)", "into 4 parts"),
    (lambda x, g: dist.reduce_scatter_tensor(x, x[:2].clone(), group=g), "input has shape (2,)", "are swapped"),
    (lambda x, g: dist.all_gather_into_tensor(x.new_zeros(7), x, group=g), "output has shape (7,)", LENGTH),
]


@pytest.mark.parametrize(("student", "found", "cause"), MISTAKES)
def test_mistakes_are_wrong_with_their_cause(student, found, cause):
    with pytest.raises(Wrong) as wrong:
        on_process_groups(student, [torch.ones(4) * rank for rank in range(2)])
    assert found in wrong.value.found and cause in wrong.value.causes[0] and wrong.value.case == "a case"


def test_what_is_right_comes_back_with_the_record():
    run = on_process_groups(right, [torch.ones(4) * rank for rank in range(4)], groups=[[0, 2], [1, 3]])
    assert [x[0].item() for x in run.results] == [2, 4, 2, 4] and len(run.calls) == 4


def test_the_exercise_s_own_causes_come_first_and_a_wait_may_be_left_out():
    with pytest.raises(Wrong) as wrong:
        on_process_groups(MISTAKES[4][0], [torch.ones(4)] * 2, errors=[("^NoGroup", "this one")])
    assert wrong.value.causes == ("this one",)
    run = on_process_groups(MISTAKES[3][0], [torch.ones(4)] * 2, unwaited="")
    assert len(run.never_waited) == 2 and run.results[0].isnan().all()


def test_a_loop_that_does_not_end(monkeypatch):
    monkeypatch.setattr("labs_helpers.course.verdict.practice_ranks.LIMIT_S", 0.2)

    def endless(x, group):
        while x.sum() < 10:
            pass

    with pytest.raises(Wrong, match=re.escape("rank 0 was still at work after 0.2 s")):
        on_process_groups(endless, [torch.ones(4)] * 2)


def test_on_a_busy_machine_the_limit_is_that_of_the_processor_time(monkeypatch):
    monkeypatch.setattr("labs_helpers.course.verdict.practice_ranks.LIMIT_S", 0.05)
    began = time.monotonic()
    monkeypatch.setattr(time, "process_time", lambda: (time.monotonic() - began) / 50)  # others have the rest of it

    def slow(x, group):
        while time.monotonic() - began < 0.4:
            pass

    on_process_groups(slow, [torch.ones(4)] * 2)


def test_a_rank_that_waits_for_ever_outside_of_collectives(monkeypatch):
    monkeypatch.setattr("labs_helpers.course.verdict.practice_ranks.LIMIT_S", 0.1)

    def sleeps(x, group):
        for _ in range(10000):
            time.sleep(0.05)

    with pytest.raises(Wrong, match=r"rank 0 has computed nothing for 0\.3 s, in sleeps, line"):
        on_process_groups(sleeps, [torch.ones(4)] * 2)
