"""Check exercise 1 of lab 08: every replica holds rank 0's parameters and buffers, in its old memory."""

import itertools
from functools import partial

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.tree_causes import fewer_bits
from labs_helpers.course.verdict.trees import Comparison, rounded
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import TWICE, first_of, nbytes_of
from labs_helpers.data_parallel.lab08.checks.gradients import KINDS, not_a_number, of_wrong
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.replicas import FROZEN, PLAIN, TIED, TRANSPOSED, replica

CASES = (  # name, ranks, groups, parameters, with buffers or gaps
    ("2 ranks", 2, None, PLAIN, ""),
    ("a frozen and a transposed parameter", 2, None, (*FROZEN, TRANSPOSED[2]), ""),
    ("a weight that two layers share", 3, None, TIED, ""),
    ("buffers", 2, None, PLAIN, "buffers"),
    ("a parameter with gaps in memory", 2, None, PLAIN, "gaps"),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, [(4, 0, 2), (3, 1)], TRANSPOSED, "buffers"),
)
STUCK = "the calls depend on the rank, or on the order of a set"
UNREAD = "NaN, which marks a tensor that was read before the broadcast was done: call wait() on its handle first"
OWN = "this rank's own values are still there: the broadcast did not write into the tensor itself"
GAPS = "the parameter with gaps"
SCOPES = {
    "the buffers": {"first.running_mean", "steps", "table"},
    "the buffer that is not saved": {"table"},
    "the buffers of its submodules": {"first.running_mean"},
    "the buffer of integers": {"steps"},
    "the frozen parameter": {"frozen.weight"},
    GAPS: {"gaps"},
}
NOT_SENT = "it was not sent because it has gaps or is transposed: send the copy that contiguous() makes"
RECEIVED = "the broadcast wrote into the copy that contiguous() made: copy_ it back into the tensor"
LEFT_OUT = {
    "the buffers": "send the buffers too: model.buffers()",
    "the buffer that is not saved": "state_dict() leaves out a buffer with persistent=False; model.buffers() yields it",
    "the buffers of its submodules": "only the model's own buffers are sent; buffers() yields those of submodules too",
    "the buffer of integers": "a buffer may hold integers, like BatchNorm's count of batches: send it too",
    "the frozen parameter": "forward uses frozen parameters too: do not test requires_grad here",
}


@exercise("08/1", "the same start", points=10, minutes=10, reference=exercises.same_start)
def same_start(student):
    advice = "print a tensor's first element on two ranks, before and after"
    comparison = Comparison("rank {0}: {1}", bound=rounded(2), otherwise=(fewer_bits,), advice=advice)
    for case, size, groups, parts, extra in CASES:
        own = [(rank, parts, extra) for rank in range(size)]
        run = on_ranks(case, student, _call, own, groups=groups, stuck=STUCK)
        before, after, (once, *_) = zip(*run.results, strict=True)
        sent = max(sum(call.nbytes for call in run.of(rank)) for rank in range(size))
        of_gaps = NOT_SENT if sent < once else RECEIVED
        known = {**LEFT_OUT, GAPS: of_gaps, KINDS["transposed"]: of_gaps}
        special = {(scope, OWN): said for scope, said in known.items()}
        groups = groups or [range(size)]
        found, first = dict(enumerate(after)), {rank: before[group[0]] for group in groups for rank in group}
        candidates = itertools.chain(_mistakes(before, groups), [not_a_number(UNREAD, found, first)])
        causes = partial(of_wrong, comparison, found, first, candidates, parts, SCOPES, special)
        comparison.expect(case, found, first, causes)
        if sent > once:
            _too_much(case, sent, once, run.of(0), parts)
        yield f"{case}: {len(before[0])} tensors, {once} bytes"


def _call(student, group, rank, parts, extra):
    """Return the values of the model's tensors before and after the call, and their total size in bytes."""
    model = replica(parts, seed=rank)
    generator = torch.Generator().manual_seed(rank)
    if extra == "buffers":
        model.first.register_buffer("running_mean", torch.randn(4, generator=generator))
        model.register_buffer("steps", torch.tensor((2**24 + 5) * (rank + 1)))  # float32 cannot represent this number
        model.register_buffer("table", torch.randn(2, 3, generator=generator), persistent=False)
        model.last.register_buffer("table", model.table, persistent=False)  # the same tensor, shared
    if extra == "gaps":
        model.gaps = torch.nn.Parameter(torch.randn(3, 8, generator=generator)[:, 2:7])
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    kept = {name: (x.requires_grad, id(x), x.data_ptr(), x.stride()) for name, x in tensors.items()}
    before = {name: x.detach().clone() for name, x in tensors.items()}
    student(model, group)
    now = dict([*model.named_parameters(), *model.named_buffers()])
    for name, x in now.items():
        if x.requires_grad != kept[name][0]:
            raise Wrong("", f"has changed requires_grad of {name}")
        if (id(x), x.data_ptr(), x.stride()) != kept[name][1:]:
            cause = (
                "you replaced the tensor, and an optimizer would not know the new one: copy_ writes into the old one"
            )
            raise Wrong("", f"has replaced {name}: the tensor or its memory has changed", cause=cause)
    return before, {name: x.detach().clone() for name, x in now.items()}, sum(x.nbytes for x in tensors.values())


def _mistakes(before, groups):
    group_of = {rank: group for group in groups for rank in group}

    def each(function):
        """Apply a function to the group's tensors of each name."""
        return {r: {n: function([before[o][n].double() for o in g]) for n in before[0]} for r, g in group_of.items()}

    yield OWN, dict(enumerate(before))
    yield "the sum over the ranks: use a broadcast, not an all-reduce, to send rank 0's values", each(sum)
    yield (
        "the mean over the ranks: every rank has to start from rank 0's values",
        each(lambda some: sum(some) / len(some)),
    )
    yield "the values of another rank: group_src=0 names rank 0 of the group", each(lambda some: some[-1])
    yield "0: rank 0's values were never written into the tensor", each(lambda some: 0 * some[0])
    rank_0 = {rank: before[0 if rank == 0 else group[0]] for rank, group in group_of.items()}
    yield "dist.get_rank() without group counts among all ranks", rank_0


def _too_much(case, sent, once, calls, parts):
    others = sorted({call.name for call in calls} - {"broadcast"})
    tied = nbytes_of(part for part in parts if part.kind == "tied")
    pickled = "an object is pickled to be sent: it has more bytes than the tensors, and passes through the CPU's memory"
    buffer = "a buffer that two layers share is sent twice: model.buffers() yields it once"
    causes = (
        (sent - once == tied, TWICE),
        (sent - once == 24 and any(call.elements == 6 for call in calls), buffer),
        (any(call.dtype == "float64" for call in calls), "the tensors are sent in float64, which takes more bytes"),
        (len(calls) == 2 and calls[1].dtype == "uint8", pickled),
        (others, f"a broadcast is enough; {', '.join(others)} sends more bytes"),
    )
    found = f"the values are right, but a rank's collectives carry {sent} bytes; {once} are enough"
    raise Wrong(case, found, cause=first_of(causes))
