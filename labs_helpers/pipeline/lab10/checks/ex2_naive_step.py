"""Check exercise 2 of lab 10: a step of a pipeline without overlap, on practice ranks."""

from functools import partial

import torch

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, on_practice_ranks
from labs_helpers.course.verdict.tree_causes import scaled
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.step_mistakes import (
    SHAPE,
    batch,
    gradients,
    grads_of,
    loss_of,
    losses,
    mean_loss,
    mistakes,
    stage_of,
)
from labs_helpers.practice.groups import practice_groups

CASES = (  # title, ranks, micro-batches, the number that fills each parameter's .grad before the step
    ("2 ranks, 3 micro-batches", 2, 3, None),
    ("3 ranks, 2 micro-batches", 3, 2, None),
    ("4 ranks, 3 micro-batches", 4, 3, None),
    ("1 rank, 2 micro-batches", 1, 2, None),
    ("2 ranks, 3 micro-batches, the parameters have gradients already", 2, 3, 4.0),
)
OF_X = (
    "x.grad exists only after the backward pass, and only if x.requires_grad_() came before the stage used this very "
    "x; y.grad stays None"
)
NONE = (
    "None is used as a tensor: only rank 0 has inputs, and the other ranks receive theirs; receive fills the tensor "
    "that it gets, and returns None"
)
CUT = "the graph is cut: detach the stage's output only to send it, and run the stage without no_grad"
ONLY_LAST = "targets are None except on the last rank: only the last rank computes the loss"
STUCK = (
    "each send needs a receive on the other rank: rank r sends y and then waits for its gradient, while rank r + 1 "
    "receives y as its x and later sends x.grad"
)
NO_GRADIENTS = (  # on another rank, on the last rank
    "y.backward(gradient) adds them to .grad, and nothing in the step may clear them",
    "the last rank, which may be the only one, computes the loss; loss.backward() adds the gradients to .grad, and "
    "nothing in the step may clear them",
)
ONLY_RECEIVED = "token numbers have no gradient: call requires_grad_() only on a received x"
ERRORS = (
    (
        r"^Truncated: ",
        "the two tensors differ in size or dtype: send y up and x.grad back, and receive both into float32 tensors of "
        "this `shape`",
    ),
    (r"^TypeError: (to|source) is a ", "a rank is the second argument: send(tensor, to) and receive(tensor, source)"),
    (r"^TypeError: the message is a NoneType", f"send got None instead of a tensor: {OF_X}"),
    (r"NoneType(?!' object has no attribute 'grad')[^\n]*\n[^\n]*\b[xy]\.grad\b", f"a gradient is None: {OF_X}"),
    (r"^ValueError: (source|to) is -1", "rank 0 has no rank before it"),
    (r"^ValueError: (source|to) is (\d+), not another rank of a group of \2;", "the last rank has no rank after it"),
    (r"does not require grad and does not have a grad_fn", CUT),
    (r"grad can be implicitly created only for scalar", "y.backward needs the gradient that the next rank sends"),
    (r"Mismatch in shape: grad_output", "the gradient of y has the shape of y"),
    (r"only Tensors of floating point dtype can require grad", ONLY_RECEIVED),
    (r"loss_of got None as its target", ONLY_LAST),
    (r"^TypeError[^\n]*NoneType|'NoneType' object", NONE),
    (r"backward through the graph a second time", "each output takes part in one backward pass: add the gradient once"),
)
ADVICE = "follow one micro-batch through two ranks, with every message"


@exercise("10/2", "a step without overlap", points=20, minutes=25, reference=exercises.naive_step)
def naive_step(student):
    of_grads = Comparison("rank {0}'s gradients", bound=_float32, otherwise=(scaled,), advice=ADVICE)
    of_loss = Comparison("the loss that the last rank returns", bound=_float32)
    for case, ranks, m, held in CASES:
        own = [(m, rank, ranks, held) for rank in range(ranks)]
        run = on_practice_ranks(case, student, _call, own, ranks=practice_groups, errors=ERRORS, stuck=STUCK)
        found, returned = zip(*run.results, strict=True)
        of_grads.expect(case, list(found), gradients(ranks, m, held or 0.0), partial(mistakes, ranks, m, held or 0.0))
        of_loss.expect(case, _number(case, returned[-1]), mean_loss(ranks, m), partial(losses, ranks, m))
        messages = 2 * (ranks - 1) * m
        yield f"{case}: {messages} message{'s' * (messages != 1)}, the gradients of one process"


def _call(student, comm, m, rank, ranks, held):
    group, stage = PracticeCommunication(comm), stage_of(rank, ranks)
    for p in stage.parameters():
        p.grad = None if held is None else torch.full_like(p, held)
    before = [p.detach().clone() for p in stage.parameters()]
    inputs, targets = data(rank, ranks, m)
    returned = student(stage, group, inputs, targets, loss_of, SHAPE)
    if not all(map(torch.equal, before, stage.parameters())):
        cause = "only add gradients: an optimizer updates the parameters later"
        raise Wrong("", "changes its parameters", cause=cause)
    if any(p.grad is None for p in stage.parameters()):
        raise Wrong("", "has no gradients after the step", cause=NO_GRADIENTS[rank == ranks - 1])
    if (sent := group.calls["send"]) != (wanted := m * ((rank > 0) + (rank < ranks - 1))):
        raise Wrong("", f"sends {sent} messages instead of {wanted}")
    return grads_of(stage), returned


def data(rank, ranks, m):
    """Return a rank's lists of inputs and targets."""
    inputs, targets = batch(m)
    return inputs if rank == 0 else [None] * m, targets if rank == ranks - 1 else [None] * m


def _float32(found, right) -> float:
    return 2e-5 * max(1e-3, float(abs(right).max()))


def _number(case, returned):
    if returned is None:
        raise Wrong(case, "the last rank returns None instead of the mean loss", cause="return the loss")
    try:
        return torch.tensor(float(returned.detach() if isinstance(returned, torch.Tensor) else returned))
    except (TypeError, ValueError):
        raise Wrong(case, f"the last rank returns {returned!r:.60} instead of the mean loss") from None
