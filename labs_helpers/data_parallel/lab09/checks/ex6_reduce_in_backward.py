"""Exercise 6 of lab 09: buckets sent during backward, whole gradients released, and shards that accumulate."""

import re
from functools import partial
from math import inf

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.torch import GRAD_SIZE, SIZES_DIFFER
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.hook_times import NO_GRADIENT, causes_of
from labs_helpers.data_parallel.lab09.checks.kept import LeftAlone, bytes_kept, expect_none_kept, hooks_of
from labs_helpers.data_parallel.lab09.checks.on_ranks import DTYPES, expect_sent, on_ranks, sent
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import Places, causes, mean_shards, other_padding, places
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers
from labs_helpers.data_parallel.lab09.flat import held
from labs_helpers.practice.process_groups import mark

BEGIN, END = "backward begins", "backward ends"
NEVER_FULL = "a bucket never filled, in the first pass or a later one: check how many gradients it waits for"
LATE = "start a bucket's reduce-scatter in the hook of its last gradient, not in finish()"
EARLY = (
    "a bucket is sent before all its gradients have arrived. Count per "
    "bucket, start over in each pass, and expect any "
    "parameter to be the last"
)
FREED = "p.grad = None runs before the gradient is copied, but a bucket's gradients must stay until it is full"
PARAMETERS = (
    "p.grad = None releases a gradient, whereas p.data and p itself are the weights, which only an optimizer may change"
)
ERRORS = (
    (DTYPES, "gradients may be bfloat16 or float64, but a collective needs a single dtype, here the shard's"),
    (r"TypeError: .*takes 0 positional|missing 1 required positional", "PyTorch calls the hook with its parameter"),
    (r"can't assign Variable as its own grad", "the result needs its own memory: torch.empty_like(shards[number])"),
    (
        SIZES_DIFFER,
        "a result has a different size than the .grad you add it to: add each bucket's result to its own shard",
    ),
    (GRAD_SIZE, "the received part has the size of its own bucket's shard, and belongs in that shard's .grad"),
)
CLEARED = "finish() adds the result of an earlier pass again, so it must clear its list of started work"
ADVICE = (
    "take two ranks, one bucket with one parameter, and two passes. What "
    "does each line leave in flat, mine, and shards?"
)


@exercise("09/6", "reduce gradients during backward", points=15, minutes=20, reference=exercises.reduce_in_backward)
def reduce_in_backward(student):
    comparisons = [RankTensors(f"shard.grad of bucket {b}", ADVICE) for b in range(3)]
    for title, ranks, buckets, passes, groups in (
        ("one bucket on 2 ranks", 2, [[(4,)]], 1, None),
        ("three buckets on 3 ranks, with padding", 3, [[(2, 3), (5,), (2,)], [(4,)], [(), (3, 2)]], 1, None),
        ("three passes on 4 ranks", 4, [[(3,), (2, 2), (4,)], [(5,), (1, 3)]], 3, None),
        ("two groups of 2 ranks, two passes", 4, [[(3, 2)], [(2,), (3,)]], 2, [[2, 0], [1, 3]]),
        ("bfloat16 gradients, float32 shards, two passes", 3, [[(3, 2), (5,)], [(2,), (6,)]], 2, None),
        ("one rank, two passes", 1, [[(3,), (2, 2)], [(2,)]], 2, None),
    ):
        at, sizes = places(ranks, groups), [sum(torch.Size(s).numel() for s in bucket) for bucket in buckets]
        size, padded = at.size, [-(-n // at.size) * at.size for n in sizes]
        dtype, noted = torch.float64 if passes == 3 else torch.float32, []
        narrow = torch.bfloat16 if title.startswith("bfloat16") else dtype
        gradients = [  # [pass][rank][bucket] → a flat vector; a sum of two is rounded in bfloat16
            [[(numbers(n, 100 * k + 10 * rank + b) * (1 + rank / 64)).to(narrow).to(dtype) for b, n in enumerate(sizes)]
             for rank in range(ranks)]
            for k in range(passes)
        ]  # fmt: skip
        given = [(buckets, [own[rank] for own in gradients], narrow) for rank in range(ranks)]
        errors = *causes_of(noted, EARLY, FREED), *ERRORS
        run = on_ranks(title, student, partial(_call, noted), given, errors=errors, groups=groups)
        for k in range(passes):
            case = f"{title}, pass {k + 1}" if passes > 1 else title
            _expect_let_go(case, [own[k][0] for own in run.results], run, len(sizes) * passes)
            found = [own[k][1] for own in run.results]
            for b in range(len(sizes)):
                own = [[of_pass[rank][b] for of_pass in gradients[: k + 1]] for rank in range(ranks)]
                right = mean_shards([sum(one) for one in own], at)
                shards = [of_rank[b] for of_rank in found]
                none = "finish() must store the result in .grad" if sent(run, 0) else NEVER_FULL
                mistakes = partial(_causes, own, at, buckets, b, shards, narrow != dtype)
                comparisons[b].expect(case, shards, right, mistakes, dtype, none)
        if size > 1:
            _expect_overlap(title, run)
        wanted = [("reduce-scatter", n) for n in padded] * passes
        expect_sent(title, run, wanted * (size > 1), partial(_cost, len(wanted)))
        # Scratch memory for one bucket may remain, and the memory of the results.
        limit = sum(padded) * dtype.itemsize if size > 1 and len(sizes) > 1 else inf
        for rank, own in enumerate(run.results):
            expect_none_kept(title, rank, any(large for _, _, large, _ in own), max(kept for *_, kept in own), limit)
        sends = f"{len(buckets) * passes} reduce-scatters during backward" if size > 1 else "nothing to send"
        yield f"{title}: {sends}; each rank keeps {sum(padded) // size} of {sum(sizes)} numbers"


def arrivals_of(buckets) -> list[tuple[int, int]]:
    """Return (bucket, place) in order of arrival: buckets interleave, and any parameter may be its bucket's last."""
    every = [(b, i) for b, bucket in enumerate(buckets) for i in range(len(bucket))]
    return sorted(every, key=lambda at: ((at[1] + 1) % max(2, len(buckets[at[0]])), at[0]))


def _call(noted, student, group, buckets, gradients, dtype):
    """Return for each pass: the .grad that remain, a copy of each shard's .grad, whether these are views of larger
    tensors, and the bytes that the answer keeps. Append the cause of an error during backward to `noted`."""
    params = [[nn.Parameter(torch.full(shape, 2.0, dtype=dtype)) for shape in bucket] for bucket in buckets]
    sizes = [-(-sum(p.numel() for p in bucket) // group.size()) for bucket in params]
    shards = [nn.Parameter(torch.ones(n, dtype=gradients[0][0].dtype)) for n in sizes]
    arrived: list[nn.Parameter] = []
    for p in (p for bucket in params for p in bucket):
        p.register_post_accumulate_grad_hook(arrived.append)
    weights = {f"parameter {i} of bucket {b}": p for b, bucket in enumerate(params) for i, p in enumerate(bucket)}
    left_alone = LeftAlone(lambda: weights)
    finish = student([list(bucket) for bucket in params], list(shards), group)
    found = []
    for own in gradients:
        loss, cut = 0.0, [flat.split([p.numel() for p in some]) for some, flat in zip(params, own, strict=True)]
        for b, i in reversed(arrivals_of(buckets)):  # backward visits them in reverse
            loss = loss + (params[b][i] * cut[b][i].view(params[b][i].shape).to(dtype)).sum()
        mark(group, BEGIN)
        arrived.clear()
        try:
            loss.backward()
        except Exception as error:
            if re.search(NO_GRADIENT, f"{error}"):
                noted.append(FREED if all(p.grad is None for p in arrived) else EARLY)
            raise
        mark(group, END)
        here = [(b, i) for b, bucket in enumerate(params) for i, p in enumerate(bucket) if p.grad is not None]
        finish()
        if any(bool((shard != 1).any()) for shard in shards) and any(shard.grad is not None for shard in shards):
            cause = "the result needs its own memory and belongs in .grad; the shard itself holds the parameters"
            raise Wrong("", "has changed the shards themselves", cause=cause)
        left_alone.expect(PARAMETERS)
        large = held(s.grad for s in shards) > sum(s.nbytes for s in shards)
        every = [p for bucket in params for p in bucket]
        kept = bytes_kept([finish, *hooks_of(every)], every, shards, [s.grad for s in shards])
        found.append((here, [None if s.grad is None else s.grad.clone() for s in shards], large, kept))
    return found


def _expect_let_go(case: str, own: list, run, sends: int) -> None:
    """Raise Wrong if a rank still has a whole .grad after backward. sends: its reduce-scatters in all passes."""
    for rank, here in enumerate(own):
        if here:
            _expect_during(case, rank, run, sends)
            found = "rank {}: parameter {} of bucket {} still has its whole .grad after backward"
            cause = "set p.grad = None to release a gradient once it has been copied into the bucket"
            raise Wrong(case, found.format(rank, *here[0][::-1]), cause=cause)


def _expect_during(case: str, rank: int, run, sends: int) -> None:
    during = len(run.started_between(rank, BEGIN, END))
    if during < sends:
        found = f"rank {rank} starts {during} of {sends} collectives during backward"
        raise Wrong(case, found, cause=LATE if len(run.of(rank)) >= sends else NEVER_FULL)


def _expect_overlap(case: str, run) -> None:
    for rank in range(len(run.results)):
        blocking = [call for call in run.started_between(rank, BEGIN, END) if not call.asynchronous]
        if waits := blocking or run.waited_between(rank, BEGIN, END):
            cause = "async_op=True starts the collective without waiting, and finish() waits for it"
            cause = cause if blocking else "call wait() in finish(), because a wait in the hook holds up backward"
            raise Wrong(case, f"rank {rank} waits in backward for {waits[0]}, so nothing overlaps", cause=cause)
        _expect_during(case, rank, run, len(run.of(rank)))


def _cost(buckets: int, made: list) -> str:
    if {kind for kind, _ in made} != {"reduce-scatter"} or len(made) < buckets:
        return ""
    if len(made) == buckets:
        return "the padding is larger than equal shards require"
    return "you start one reduce-scatter per gradient, but a bucket should need only one for all its gradients"


def _rounded(at: Places, summed: bool, own) -> list:
    """Return each rank's shard of one pass's mean when gradients are divided, and perhaps also summed, in bfloat16."""
    parts = [(one.bfloat16() / at.size).to(torch.bfloat16 if summed else torch.float32) for one in own]
    return mean_shards([sum(parts[r] for r in group) for group in at.of_rank], at)


def _causes(own, at: Places, buckets, number, found, rounded):
    shapes = buckets[number]
    sizes = [torch.Size(shape).numel() for shape in shapes]
    order = "the gradients are concatenated in order of arrival instead of the bucket's order"
    total = [sum(one) for one in own]
    right = mean_shards(total, at)
    arrived = [i for b, i in arrivals_of(buckets) if b == number]
    yield from causes(own, at, sizes, order, [arrived, range(len(shapes))[::-1]])
    said = (
        "averaged in bfloat16, which rounds: convert with .to(the shard's dtype) before the division and the collective"
    )
    for summed in (True, False) if rounded else ():
        each = map(partial(_rounded, at, summed), zip(*own, strict=True))
        yield said, [sum(part) for part in zip(*each, strict=True)]
    weights = mean_shards([torch.full_like(one, 2.0 * len(own[0])) for one in total], at)
    yield "the parameters are sent instead of their gradients", weights
    padding = "the padding after the last gradient must be zeros"
    yield padding, other_padding(found, right, sum(sizes), at)
    yield "divided by the number of gradients in the bucket", [at.size * one / len(shapes) for one in right]
    if (passes := len(own[0])) > 1:
        received = [2 * one for one in mean_shards([one[-1] for one in own], at)]
        yield (
            "the next pass receives into the tensor that is already shard.grad: allocate a new one for each pass",
            received,
        )
        again = [sum((passes - k) * g.double() for k, g in enumerate(one)) for one in own]
        yield CLEARED, mean_shards(again, at)
        yield "this is the mean over the passes, which must be added", [one / passes for one in right]
