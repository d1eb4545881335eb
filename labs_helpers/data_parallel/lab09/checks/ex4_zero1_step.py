"""Exercise 4 of lab 09: two steps of ZeRO-1 against one process, and the bytes they send."""

from functools import partial

import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import GATHERED_SHAPE
from labs_helpers.course.verdict.messages.torch import GRAD_SIZE
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.on_ranks import DTYPES, alone, expect_sent, on_ranks
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import pieces_of
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import places
from labs_helpers.data_parallel.lab09.checks.step_mistakes import causes
from labs_helpers.data_parallel.lab09.checks.tensors import RankTensors, numbers
from labs_helpers.data_parallel.lab09.flat import states_of
from labs_helpers.data_parallel.lab09.shards import parameters_on, step_once

ERRORS = (
    (DTYPES, "whole and gradient are not always float32: use empty_like, or dtype=gradient.dtype"),
    (
        GRAD_SIZE,
        "a tensor is one piece of the shard, so its .grad is the equally long piece of the reduce-scatter's result",
    ),
    (GATHERED_SHAPE, "pass the output first, then the input: whole, and this rank's shard with all its padding"),
)
SGD = partial(torch.optim.SGD, lr=0.125)
DECAYED = partial(torch.optim.SGD, lr=0.25)
MOMENTUM = partial(torch.optim.SGD, lr=0.5, momentum=0.5)
ADAMW = partial(torch.optim.AdamW, lr=0.1)
ADVICE = "take two ranks and whole = (1, 2, 3, 4), and write down what each rank holds after each of the four lines."


@exercise("09/4", "a step of ZeRO-1", points=15, minutes=15, reference=exercises.zero1_step)
def zero1_step(student):
    step_once()
    compared = RankTensors("whole", ADVICE)
    for title, ranks, numels, decays, optimizer, groups in (
        ("SGD on 3 ranks", 3, (9,), (0.0,), SGD, None),
        (
            "SGD on 4 ranks, with decay for some parameters and padding",
            4,
            (3, 9, 2, 4),
            (0.5, 0.0, 0.5, 0.0),
            DECAYED,
            None,
        ),
        ("momentum on 3 ranks, in float64", 3, (5, 4, 6), (0.0, 0.0, 0.0), MOMENTUM, None),
        ("AdamW on 3 ranks", 3, (10, 1, 9), (0.1, 0.0, 0.0), ADAMW, None),
        ("SGD, two groups of 2 ranks", 4, (3, 5), (0.0, 0.5), DECAYED, [[3, 1], [0, 2]]),
        ("AdamW on one rank", 1, (4, 3), (0.1, 0.0), ADAMW, None),
    ):
        at = places(ranks, groups)
        size = at.size
        n = pieces_of(numels, size, 0)[0] * size
        dtype = torch.float64 if optimizer is MOMENTUM else torch.float32
        padding = partial(nn.functional.pad, pad=(0, n - sum(numels)))
        whole, *flat = (padding(numbers(sum(numels), seed).to(dtype)) for seed in (1, *range(10, 10 + 2 * ranks)))
        gradients = [flat[step::2] for step in range(2)]
        given = [
            (whole, [own[rank] for own in gradients], pieces_of(numels, size, at.place[rank])[1], decays, optimizer)
            for rank in range(ranks)
        ]
        run = on_ranks(title, student, _call, given, errors=ERRORS, groups=groups)
        means = [[torch.stack([own[r] for r in group]).double().mean(0) for own in gradients] for group in at.of_rank]
        before, *right = zip(*(alone(whole, own, optimizer, numels, decays) for own in means), strict=True)
        decay = padding(torch.tensor(decays).double().repeat_interleave(torch.tensor(numels)))
        for step in range(2):
            case = f"{title}, step {step + 1}"
            found = [states[step][0] for states in run.results]
            mistakes = partial(causes, before, gradients, step, at, decay, optimizer.keywords["lr"], run, given)
            compared.expect(case, found, right[step], mistakes if optimizer in (SGD, DECAYED) else tuple, dtype)
            for rank, states in enumerate(run.results):
                if states[step][1]:
                    cause = "the shard's gradient is kept until the next step: call optimizer.zero_grad()"
                    raise Wrong(case, f"rank {rank}'s tensors still have a .grad after the step", cause=cause)
            before = right[step]
        expect_sent(title, run, [("reduce-scatter", n), ("all-gather", n)] * (2 * (size > 1)))
        share = sum(states[2] for states in run.results) // (ranks // size)
        yield (
            f"{title}: matches one process; {share} numbers of optimizer "
            f"states on {size} rank{'s' * (size > 1)} together"
        )


def _call(student, group, whole, gradients, pieces, decays, make):
    """Return after each step whole and whether a .grad remains, and at the end the numbers in the states."""
    whole = whole.clone()
    shard = whole.chunk(group.size())[group.rank()]
    tensors = parameters_on(shard, pieces)
    own, states, param_groups = list(tensors), [], [{"params": [], "weight_decay": decay} for decay in decays]
    for (number, *_), tensor in zip(pieces, tensors, strict=True):
        param_groups[number]["params"].append(tensor)
    optimizer = make(param_groups)
    for gradient in gradients:
        student(whole, gradient.clone(), optimizer, tensors, group)
        states.append((whole.clone(), any(t.grad is not None for t in own)))
    if own and own[0].data_ptr() != shard.data_ptr():
        cause = "whole = … creates a new tensor, but the parameters are views of the existing one"
        raise Wrong("", "has tensors that no longer share whole's memory", cause=cause)
    return *states, sum(one.numel() for one in states_of(optimizer))
