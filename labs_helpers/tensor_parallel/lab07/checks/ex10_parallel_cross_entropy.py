"""Check exercise 10 of lab 07: cross-entropy over a split vocabulary, the transfer exercise."""

from functools import partial

import torch
from torch import Tensor

from labs_helpers.communication.interface import ring_bytes
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, one_thread
from labs_helpers.course.verdict.tree_causes import nearly, not_finite
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_cases import Case, Tokens, given_of, tokens_of
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_mistakes import (
    ERRORS,
    NOT_FINITE,
    gradient_causes,
    loss_causes,
)
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import expect_anew
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass, expect_passes, watched
from labs_helpers.tensor_parallel.lab07.checks.rank_group import Group, in_groups

WORDS = {
    "why": "a few roundings of numbers as large as the logits",
    "advice": "work out {where} by hand for one token: what does each rank hold, and what do the others need?",
}
NEARLY = "some step runs in float16 or bfloat16, or adds a small number"
ENOUGH = "exchange three numbers per token: the largest logit, the sum of exponentials, the target's logit"
NUMBER = ".item() and float() convert it to a Python number, and wait until a GPU has computed it"
FORM = "expected (loss, grad_logits)"
CASES = (
    Case("2 ranks, V = 10", 2, batch=3, length=4, vocabulary=10),
    Case("3 ranks, V = 12", 3, batch=2, length=5, vocabulary=12),
    Case("1 rank, V = 7", 1, batch=2, length=3, vocabulary=7),
    Case("2 groups of 2 ranks, sliced logits and targets", 2, batch=3, length=2, vocabulary=8, groups=2, sliced=True),
    Case("2 ranks, sequences of one token", 2, batch=3, length=1, vocabulary=8),
    Case("logits near 10,000", 3, batch=2, length=4, vocabulary=15, kind="high"),
    Case("logits near 10,000 and −10,000", 4, batch=2, length=3, vocabulary=20, kind="huge"),
    Case("targets 20,000 below the largest logit", 2, batch=2, length=2, vocabulary=6, kind="far"),
    Case("targets 30 above all other logits", 3, batch=2, length=2, vocabulary=9, kind="sure"),
)
SHORT, LONG = CASES[1], Case("3 ranks, V = 120", 3, batch=2, length=5, vocabulary=120)


@exercise("07/10", "transfer: cross-entropy over a split vocabulary", points=50, minutes=40)
def parallel_cross_entropy(student):
    passes = {}
    for case in CASES:
        passes[case] = one = _expect_right(case, student)
        sent = f", {one.listed}: {one.sent:,} bytes per rank" if one.sent else ""
        yield f"{case.name}: the loss is {float(one.returned[0]):,.5g}{sent}"
    yield _expect_as_much(passes[SHORT], _expect_right(LONG, student))
    tokens = tokens_of(CASES[0], 0)
    first = [given_of(CASES[0], tokens, place) for place in range(CASES[0].ranks)]
    then = [(-logits, targets.flip(0)) for logits, targets in first]
    yield expect_anew("2 ranks, two calls", student, _loss_and_gradient, first, then)


def _loss_and_gradient(student, comm, logits, targets) -> list:
    return list(student(logits, targets, Group(comm)))


def _expect_right(case: Case, student) -> Pass:
    """Return rank 0's Pass if all ranks of all groups are right; raise Wrong otherwise."""
    groups = [tokens_of(case, group) for group in range(case.groups)]
    own = [given_of(case, tokens, place) for tokens in groups for place in range(case.ranks)]
    with one_thread():
        seen = in_groups(case, student, _on_rank, own, ERRORS)
        for tokens, passes in zip(groups, seen, strict=True):
            _judge(case, tokens, passes)
    return seen[0][0]


def _on_rank(student, group, logits, targets) -> Pass:
    return watched(group, {"logits": logits, "targets": targets}, student, logits, targets, group)[1]


def _judge(case: Case, tokens: Tokens, passes: list[Pass]) -> None:
    """Raise Wrong unless a group's loss and gradient are right."""
    title, extreme, ranks = case.name, case.kind not in ("usual", "sure"), len(passes)
    for rank, one in enumerate(passes):
        _expect_form(title, rank, one.returned, tokens.logits[rank])
    expect_passes(title, "function", passes)
    losses = [one.returned[0].reshape(()) if one.returned[0].numel() == 1 else one.returned[0] for one in passes]
    gradients = [one.returned[1] for one in passes]
    for name, found, right, bounds, causes in (
        ("loss", losses, [tokens.loss] * ranks, [tokens.loss_bound] * ranks, loss_causes),
        ("grad_logits", gradients, tokens.gradients, tokens.gradient_bounds, gradient_causes),
    ):
        otherwise = nearly(NEARLY), not_finite(NOT_FINITE if extreme else "")
        comparison = Comparison(f"rank {{0}}'s {name}", bound=bounds, slack=1e-4, otherwise=otherwise, **WORDS)
        comparison.expect(title, found, right, partial(causes, tokens.logits, tokens.targets, extreme))
    for rank, one in enumerate(gradients):
        if one.dtype != torch.float32:
            raise Wrong(title, f"rank {rank}'s grad_logits is {one.dtype}, expected torch.float32, the dtype of logits")


def _expect_form(title: str, rank: int, answer, logits: Tensor) -> None:
    """Raise Wrong unless a rank's answer is a pair that starts with a tensor."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        of = f"{len(answer)} values" if isinstance(answer, tuple) else f"one {type(answer).__name__}"
        raise Wrong(title, f"rank {rank} returned {'None' if answer is None else of}; {FORM}")
    loss, gradient = answer
    if not isinstance(loss, Tensor):
        said = f"rank {rank}'s loss is of type {type(loss).__name__}; expected a tensor of one number"
        raise Wrong(title, said, cause=NUMBER if isinstance(loss, (int, float)) else "")
    if loss.shape == logits.shape and isinstance(gradient, Tensor) and gradient.numel() == 1:
        raise Wrong(title, f"rank {rank} returned the gradient first; {FORM}", cause="the two are swapped")


def _expect_as_much(short: Pass, long: Pass) -> str:
    """Return the line to print; raise Wrong if a larger vocabulary makes the ranks send more."""
    whole = 4 * LONG.batch * LONG.length * LONG.vocabulary
    if long.sent != short.sent:
        grows = f"{long.sent:,} bytes leave each rank, against {short.sent:,} with V = {SHORT.vocabulary}"
        what = "the logits are gathered" if long.payload["all_gather"] >= whole else "the messages grow with V"
        said = f"loss and gradient are right, but it calls {long.listed}: {grows}"
        raise Wrong(LONG.name, said, cause=f"{what}; {ENOUGH}")
    gathered = ring_bytes("all_gather", whole, LONG.ranks)
    return f"{LONG.name}: {long.sent:,} bytes per rank as before; gathering the logits would take {gathered:,}"
