"""Exercise 4 of lab 09: two steps of ZeRO-1 against one process, and what they send."""

from functools import partial

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import pieces_of
from labs_helpers.data_parallel.lab09.checks.ranks import expect_sent, on_ranks, sent
from labs_helpers.data_parallel.lab09.checks.tensors import expect_all, numbers

ERRORS = (
    (
        r"gradient of size|has data of a different size",
        "a tensor is one piece of the shard: its .grad is as large as it is, a part of what the reduce-scatter leaves",
    ),
    (r"all_gather_into_tensor: output has", "what is gathered is the whole shard, padding too: whole.numel() / ranks"),
    (r"step\(\) (missing|got|takes)", "optimizer.step() takes nothing"),
)  # fmt: skip
SGD = partial(torch.optim.SGD, lr=0.125)
DECAYED = partial(torch.optim.SGD, lr=0.25)
MOMENTUM = partial(torch.optim.SGD, lr=0.5, momentum=0.5)
ADAMW = partial(torch.optim.AdamW, lr=0.1)
ADVICE = "two ranks, whole = (1, 2, 3, 4): write down what each holds after each of the four lines."


@exercise("09/4", "a step of ZeRO-1", points=15, minutes=15, reference=exercises.zero1_step)
def zero1_step(student):
    passed = []
    for title, ranks, numels, decays, optimizer, groups in (
        ("SGD on 3 ranks", 3, (9,), (0.0,), SGD, None),
        ("SGD on 4 ranks, with decay for some, and padding", 4, (7, 9, 2), (0.5, 0.0, 0.5), DECAYED, None),
        ("momentum on 3 ranks", 3, (5, 4, 6), (0.0, 0.0, 0.0), MOMENTUM, None),
        ("AdamW on 3 ranks", 3, (10, 1, 9), (0.1, 0.0, 0.0), ADAMW, None),
        ("SGD, two groups of 2 ranks", 4, (3, 5), (0.0, 0.5), DECAYED, [[3, 1], [0, 2]]),
        ("AdamW on one rank", 1, (4, 3), (0.1, 0.0), ADAMW, None),
    ):
        members = groups or [list(range(ranks))]
        size = len(members[0])
        n = pieces_of(numels, size, 0)[0] * size
        whole = numbers(n, 1)
        whole[sum(numels) :] = 0
        gradients = [[numbers(n, 10 + 2 * rank + step) for rank in range(ranks)] for step in range(2)]
        for own in gradients:
            for one in own:
                one[sum(numels) :] = 0
        place = {rank: group.index(rank) for group in members for rank in group}
        given = [
            (whole, [own[rank] for own in gradients], pieces_of(numels, size, place[rank])[1], decays, optimizer)
            for rank in range(ranks)
        ]
        run = on_ranks(title, student, _call, given, errors=ERRORS, groups=groups)
        of_rank = [next(group for group in members if rank in group) for rank in range(ranks)]
        before, decay = [whole.double()] * ranks, _spread(numels, decays, n)
        for step in range(2):
            case = f"{title}, step {step + 1}"
            found = [states[step][0] for states in run.results]
            means = [torch.stack([gradients[step][other].double() for other in group]).mean(0) for group in of_rank]
            right = [_steps(whole, gradients, group, numels, decays, optimizer)[step] for group in of_rank]
            plain = optimizer in (SGD, DECAYED)
            causes = partial(
                _causes, before, means, gradients, step, of_rank, place, decay, optimizer.keywords["lr"], run, given
            )
            expect_all(case, "whole", found, right, causes if plain else (lambda: ()), passed if plain else [], ADVICE)
            for rank, states in enumerate(run.results):
                if states[step][1]:
                    cause = "the gradient's shard is kept until the next step: optimizer.zero_grad()"
                    raise Wrong(case, f"rank {rank}'s tensors still have a .grad behind the step", cause=cause)
            before = right
        if any(states[2] for states in run.results):
            cause = "whole = … makes another tensor; the parameters are views of the one that is there"
            raise Wrong(title, "the memory of whole is not the tensors' any more", cause=cause)
        expect_sent(title, run, [("reduce-scatter", n), ("all-gather", n)] * (2 * (size > 1)))
        share = sum(states[3] for states in run.results) // len(members)
        yield f"{title}: as in one process; {share} numbers of states on {size} rank{'s' * (size > 1)} together"


def _call(student, group, whole, gradients, pieces, decays, make):
    """Behind each step whole and whether there is a .grad; whether the tensors are elsewhere; numbers of states."""
    whole = whole.clone()
    shard = whole.chunk(group.size())[group.rank()]
    tensors, at = [], 0
    for _, begin, end in pieces:
        tensors.append(nn.Parameter(shard[at : at + end - begin]))
        at += end - begin
    param_groups = [
        {"params": [t for t, piece in zip(tensors, pieces, strict=True) if decays[piece[0]] == decay],
         "weight_decay": decay} for decay in dict.fromkeys(decays)
    ]  # fmt: skip
    optimizer, own, states = make(param_groups), list(tensors), []
    for gradient in gradients:
        student(whole, gradient.clone(), optimizer, tensors, group)
        states.append((whole.clone(), any(t.grad is not None for t in own)))
    first = shard.data_ptr()
    moved = bool(own) and own[0].data_ptr() != first
    count = sum(v.numel() for s in optimizer.state.values() for v in s.values() if hasattr(v, "numel") and v.ndim)
    return *states, moved, count


def _spread(numels, values, n: int) -> torch.Tensor:
    flat = torch.cat([torch.full((k,), value).double() for k, value in zip(numels, values, strict=True)])
    return nn.functional.pad(flat, (0, n - len(flat)))


def _steps(whole, gradients, group, numels, decays, make):
    """What one process makes of it, step by step, in float64."""
    params = [nn.Parameter(part) for part in whole.double()[: sum(numels)].split(numels)]
    optimizer = make([{"params": [p], "weight_decay": d} for p, d in zip(params, decays, strict=True)])
    found = []
    for own in gradients:
        mean = torch.stack([own[rank].double() for rank in group]).mean(0)
        for p, part in zip(params, mean[: sum(numels)].split(numels), strict=True):
            p.grad = part
        optimizer.step()
        found.append(nn.functional.pad(torch.cat([p.detach() for p in params]), (0, len(whole) - sum(numels))))
    return found


def _causes(before, means, gradients, step, of_rank, place, decay, lr, run, given):
    """What mistakes make of a step of SGD."""
    ranks = range(len(before))
    size = len(of_rank[0])

    def updated(gradient_of, old=before):
        """Each rank's own update of its own shard, put together by an all-gather."""
        own = [old[r] - lr * (gradient_of(r) + decay * old[r]) for r in ranks]
        return [torch.cat([own[o].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks]

    def mean(r):
        return means[r]

    def placed(values, r):
        """values as rank r's shard, zeros elsewhere."""
        flat, part = torch.zeros_like(before[r]), len(before[r]) // size
        flat[place[r] * part :][: len(values[:part])] = values[:part]
        return flat

    right = updated(mean)
    yield (
        "the sum of the gradients, not the mean: a division by the ranks is missing",
        updated(lambda r: size * means[r]),
    )
    yield "divided by the ranks twice", updated(lambda r: means[r] / size)
    yield "multiplied by the ranks", updated(lambda r: size * size * means[r])
    yield "stepped twice", updated(lambda r: 2 * means[r])
    yield "divided by the number of the other ranks", updated(lambda r: size * means[r] / max(1, size - 1))
    yield "divided by 2, whatever the ranks are", updated(lambda r: size * means[r] / 2)
    yield "divided by the ranks of the job, not by the group's", updated(lambda r: size * means[r] / len(before))
    yield (
        "the largest of the gradients, not their mean: ReduceOp.MAX",
        updated(lambda r: torch.stack([gradients[step][o].double() for o in of_rank[r]]).amax(0)),
    )
    yield (
        "this rank's own gradient, and its beginning: nothing is reduced",
        updated(lambda r: placed(gradients[step][r].double(), r)),
    )

    def turned(r):
        mine, pieces = means[r].chunk(size)[place[r]], given[r][2]
        n = sum(e - b for _, b, e in pieces)
        lengths, parts, at = [e - b for _, b, e in pieces], {}, 0
        for i in reversed(range(len(pieces))):
            parts[i] = mine[at : at + lengths[i]]
            at += lengths[i]
        return placed(torch.cat([parts[i] for i in range(len(pieces))] or [mine[:n]]), r)

    yield "the gradient's parts go to the tensors in reverse", updated(turned)
    yield "the gradient is gathered, not the parameters", [means[r] for r in ranks]
    yield "this rank's own gradient: nothing is reduced", updated(lambda r: gradients[step][r].double())
    yield "this rank's own gradient, divided: nothing is reduced", updated(lambda r: gradients[step][r].double() / size)
    yield (
        "every rank updates with the first shard's gradient",
        updated(lambda r: placed(means[r].chunk(size)[0], r) if size > 1 else means[r]),
    )

    def from_its_start(r):
        """Every tensor gets the beginning of the shard's gradient."""
        mine, pieces = means[r].chunk(size)[place[r]], given[r][2]
        return placed(torch.cat([mine[: end - begin] for _, begin, end in pieces] or [mine[:0]]), r)

    yield "each tensor gets the beginning of the gradient's shard, not its own part", updated(from_its_start)

    if step:
        yield (
            "the gradient of the step before is still in it",
            updated(lambda r: means[r] + torch.stack([gradients[0][o].double() for o in of_rank[r]]).mean(0)),
        )
        yield (
            "the gradient of the step before, once more",
            updated(lambda r: torch.stack([gradients[0][o].double() for o in of_rank[r]]).mean(0)),
        )
    no_gather = [
        torch.cat([(right if o == r else before)[r].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks
    ]
    gathered = any(kind == "all-gather" for kind, _ in sent(run, 0))
    yield (
        (
            "gathered before the step has updated the shards, or not into whole"
            if gathered
            else "every rank has its own shard's update alone: nothing is gathered"
        ),
        no_gather,
    )
    yield (
        "no update of whole: optimizer.step() is missing, or its tensors have no .grad by then, or other memory",
        list(before),
    )
    yield "updated in the gradient's direction, not against it", updated(lambda r: -means[r])
    for said, other in (
        ("another rank's shard is gathered: of the rank before", lambda i: (i - 1) % size),
        ("another rank's shard is gathered: the order is reversed", lambda i: size - 1 - i),
    ):
        yield said, [torch.cat([(right if other(i) == i else before)[r].chunk(size)[other(i)] for i in range(size)])
                     for r in ranks]  # fmt: skip
    yield (
        "the ranks' whole tensors are added up; their shards are to be gathered",
        [(size - 1) * before[r] + right[r] for r in ranks],
    )
    yield (
        "rank 0's whole is sent to all: it has the update of rank 0's shard alone",
        [torch.cat([(right if i == 0 else before)[r].chunk(size)[i] for i in range(size)]) for r in ranks],
    )
    first_of_all = [
        torch.cat([(right if o == of_rank[r][0] else before)[r].chunk(size)[0] for o in of_rank[r]]) for r in ranks
    ]
    yield "every rank brings the first shard of whole to the all-gather, not its own", first_of_all
    yield (
        "every rank updates all of whole with its own gradient",
        [before[r] - lr * (gradients[step][r].double() + decay * before[r]) for r in ranks],
    )
    yield "the first tensor alone is updated", updated(lambda r: _first_only(means[r], given[r][2], place[r], size))


def _first_only(mean, pieces, place, size):
    part = len(mean) // size
    kept = torch.zeros_like(mean)
    if pieces:
        n = pieces[0][2] - pieces[0][1]
        kept[place * part : place * part + n] = mean[place * part : place * part + n]
    return kept
