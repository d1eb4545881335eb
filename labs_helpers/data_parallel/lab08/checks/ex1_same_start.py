"""Exercise 1 of lab 08: all that a replica computes with is rank 0's, in the memory where it was."""

from __future__ import annotations

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.gradients import expect_means
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.replicas import FROZEN, PLAIN, TIED, TRANSPOSED, replica

CASES = (  # name, ranks, groups, parameters, with buffers and gaps
    ("2 ranks", 2, None, PLAIN, False),
    ("a frozen parameter and one that lies transposed", 2, None, (*FROZEN, TRANSPOSED[2]), False),
    ("a weight that two layers share", 3, None, TIED, False),
    ("buffers", 2, None, PLAIN, "buffers"),
    ("a parameter with gaps in memory", 2, None, PLAIN, "gaps"),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, [(4, 0, 2), (3, 1)], TRANSPOSED, "buffers"),
)
OWN = "this rank's own values are still there"
SENTENCES = {
    "own": f"{OWN}: nothing was received into the tensor itself",
    "sum": "the sum over the ranks: a broadcast, not an all-reduce, brings rank 0's values",
    "mean": "the mean over the ranks; everybody starts from rank 0's",
    "other": "the values of another rank: rank 0 of the group is group_src=0",
    "unread": "not a number: it was read before the broadcast was done; wait() on its handle first",
    "zero": "0: rank 0's values never got there",
    "rounded": "on the way it had fewer bits than it has: it travels in its own dtype",
}
BUFFERS = {"first.running_mean", "steps", "table"}
GLOBAL = "dist.get_rank() without group counts among all ranks"
RECEIVED = "contiguous() made a copy, which was received into: copy_ it back into the tensor"
SPECIAL = {
    (
        "the buffers of its parts",
        "own",
    ): "only the model's own buffers are sent; model.buffers() has those of its parts too",
    ("the buffers", "own"): "buffers are part of the start as well: model.buffers()",
    (
        "the buffer that is not saved",
        "own",
    ): "state_dict() leaves out a buffer with persistent=False: model.buffers() has it",
    ("the frozen parameter", "own"): "frozen parameters are computed with as well: no test of requires_grad here",
    ("the buffers that hold floats", "own"): "only buffers of floats are skipped",
    (
        "the buffer of integers",
        "own",
    ): "a buffer may hold integers, as BatchNorm's count of batches does; it is sent too",
    ("the parameter with gaps", "own"): RECEIVED,
    ("the parameter that lies transposed in memory", "own"): RECEIVED,
}


@exercise("08/1", "the same start", points=10, minutes=10, reference=exercises.same_start)
def same_start(student):
    for case, size, groups, parts, extra in CASES:
        run = on_ranks(
            case,
            student,
            _call,
            [(rank, parts, extra) for rank in range(size)],
            groups=groups,
            stuck="what is sent depends on the rank, or on the order of a set",
        )
        for members in groups or [tuple(range(size))]:
            before, after, problems, once = zip(*(run.results[rank] for rank in members), strict=True)
            for rank, problem in zip(members, problems, strict=True):
                if problem:
                    raise Wrong(case, f"rank {rank}: {problem[0]}", cause=problem[1])
            called = {
                "the buffers": BUFFERS,
                "the buffer that is not saved": {"table"},
                "the buffers of its parts": {"first.running_mean"},
                "the buffer of integers": {"steps"},
                "the frozen parameter": {"frozen.weight"},
                "the parameter with gaps": {"gaps"},
            }
            sent = sum(call.nbytes for call in run.of(members[0]))
            _expect_values(case, after, before, parts, called, members, sent < once[0])
            if sent > once[0]:
                _too_much(case, sent, once[0], run.of(members[0]), parts)
        yield f"{case}: {len(before[0])} tensors, {once[0]} bytes"


def _call(student, group, rank, parts, extra):
    model = replica(parts, seed=rank)
    generator = torch.Generator().manual_seed(rank)
    if extra == "buffers":
        model.first.register_buffer("running_mean", torch.randn(4, generator=generator))
        model.register_buffer("steps", torch.tensor((2**24 + 5) * (rank + 1)))  # float32 has no such number
        model.register_buffer("table", torch.randn(2, 3, generator=generator), persistent=False)
        model.last.register_buffer("table", model.table, persistent=False)  # the same table
    if extra == "gaps":
        model.gaps = torch.nn.Parameter(torch.randn(3, 8, generator=generator)[:, 2:7])
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    places = {name: (id(x), x.data_ptr(), x.stride(), x.requires_grad) for name, x in tensors.items()}
    before = {name: x.detach().clone() for name, x in tensors.items()}
    student(model, group)
    now = dict([*model.named_parameters(), *model.named_buffers()])
    problem = ()
    for name, x in now.items():
        if (id(x), x.data_ptr(), x.stride(), x.requires_grad) != places[name]:
            what = "requires_grad" if x.requires_grad != places[name][3] else "the tensor itself or its memory"
            cause = "a new tensor was put in its place, which an optimizer does not know: copy_ writes into the old one"
            problem = (f"{name} is not what it was: {what} has changed", cause if what[0] == "t" else "")
            break
    once = sum(one.nbytes for one in {id(one): one for one in tensors.values()}.values())
    return before, {name: x.detach().clone() for name, x in now.items()}, problem, once


def _expect_values(case, after, before, parts, called, members, left_out):
    """left_out: fewer bytes than all tensors have were sent."""
    first = {n: x.double() for n, x in before[0].items()}
    before = [{n: x.double() for n, x in one.items()} for one in before]
    size = len(before)
    total = {n: sum(one[n] for one in before) for n in first}
    mistakes = {
        "mean": [{n: total[n] / size for n in first}] * size,
        "other": [dict(before[-1])] * size,
    }
    special = dict(SPECIAL)
    turned = ("the parameter that lies transposed in memory", "own")
    if left_out:
        left = "it has not been sent, although it lies with gaps or transposed: contiguous() makes a copy that can be"
        special |= {turned: left, ("the parameter with gaps", "own"): left}
    if 0 in members[1:]:  # another than the group's first
        mistakes[GLOBAL] = [before[i] if member == 0 else first for i, member in enumerate(members)]
    expect_means(
        case,
        after,
        before,
        parts,
        expected=first,
        extra=mistakes,
        groups=called,
        special=special,
        sentences=SENTENCES,
        kind="",
        advice="print a tensor's first element on two ranks, before and after",
    )


def _too_much(case, sent, once, calls, parts):
    tied = next((4 * part.shape[0] * part.shape[1] for part in parts if part.kind == "tied"), 0)
    cause = ""
    if sent - once == tied:
        cause = (
            "the weight that two layers share is sent twice: state_dict() and a loop over "
            "modules meet it twice, model.parameters() once"
        )
    elif sent - once == 24 and any(call.elements == 6 for call in calls):
        cause = "a buffer that two layers share is sent twice: model.buffers() has it once"
    elif any(call.dtype == "float64" for call in calls):
        cause = "everything travels in float64, more bytes than it has"
    elif len(calls) == 2 and calls[1].dtype == "uint8":
        cause = "an object is pickled on the way: more bytes than the tensors, and all through the memory of the CPU"
    elif {call.name for call in calls} != {"broadcast"}:
        cause = (
            "a broadcast is enough; " + ", ".join(sorted({call.name for call in calls} - {"broadcast"})) + " sends more"
        )
    raise Wrong(
        case,
        f"the values are right, but rank 0 takes part in {sent} bytes of collectives; {once} are enough",
        cause=cause,
    )
