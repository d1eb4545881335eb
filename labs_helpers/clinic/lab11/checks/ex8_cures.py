"""Check exercise 8 of lab 11: three cured methods, by what they keep, read and start."""

from math import isclose
from types import SimpleNamespace

import torch

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks.patients import CountingGroup, Patient, Reads
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import (
    Wrong,
    describe_error,
    expect_tuple,
    is_number,
    on_practice_ranks,
    one_thread,
)
from labs_helpers.course.verdict.returned import expect_order
from labs_helpers.course.verdict.variants import variant
from labs_helpers.measure.peak_memory import Alive
from labs_helpers.practice.groups import practice_groups

NAMES = ("loss", "log", "average_gradients")
STEPS = 8
KEPT = 64  # bytes that a step may leave alive, besides those of other steps
SHAPES = ((3, 4), (5,), (2, 2, 2), (1,))
NO_GRAPH = "the loss itself, or what it is computed from, is detached or made under no_grad; detach the entropy alone"
GRAPH = "the entropy still refers to its graph, and the graph to the activations: detach the entropy"
READ_ENTROPY = "to make a number of the entropy, the program reads it from the device; detach() leaves it there"
IN_A_LOOP = "each value is a read of its own: put the losses into one tensor, and read that once"
EVERY = "the loss is read in every step: keep it in self.pending until the curve is due"
NONE_STARTED = "no collective averages the gradients: self.group.start_mean starts one"
PER_GRADIENT = "it starts a collective per gradient: start_mean takes all of them at once"
ALL_OF_THEM = "this gradient does not change, unlike others: pass all of them"
NOT_WRITTEN = "the gradient itself does not change: write the mean into it"
NOT_WAITED = "the request has to be waited for, or the optimizer may use gradients that are not there yet"
EMPTY = ((r"non-empty TensorList", "self.pending is empty then: it keeps the losses until the curve is due"),)
ERRORS = (
    (
        r"^AttributeError: '(list|tuple|generator)' object",
        "a list is no tensor: start_mean(*list) passes each tensor of a list",
    ),
)


@exercise("11/8", "three cures", points=20, minutes=30, reference=exercises.cures)
def cures(student):
    methods = expect_tuple("", student(), *NAMES)
    for name, method in zip(NAMES, methods, strict=True):
        if not callable(method):
            raise Wrong("", f"{name} is {method!r:.60} instead of a method")
    expect_order("", tuple(getattr(method, "__name__", "") for method in methods), NAMES, *NAMES)
    for name, judge, method in zip(NAMES, (_loss, _log), methods, strict=False):
        try:
            with one_thread():
                line = judge(method)
        except Wrong:
            raise
        except Exception as error:
            raise describe_error(student, error, name, EMPTY) from None
        yield line
    yield _average(student, methods[2])


def _loss(method):
    job, right, alive, reads = _job(loss=method), _healthy_losses(), [], Reads()
    with Alive(()) as memory:
        for step, (expected, entropy) in enumerate(right):
            x, y = next(job.batches)
            with reads:
                loss = job.loss(x, y)
            _expect_loss(loss, expected, entropy, step)
            job.backward(loss)
            job.update()
            del loss
            alive.append(memory.alive)
    if reads.count:
        cause = READ_ENTROPY if reads.count == STEPS else ""
        raise Wrong("loss", f"{reads.count} reads in {STEPS} steps", "none", cause=cause)
    _expect_entropies(job.entropies, [entropy for _, entropy in right])
    growth = (alive[-1] - alive[STEPS // 2 - 1]) // (STEPS // 2)
    if growth > KEPT:
        cause = GRAPH if any(entropy.requires_grad for entropy in job.entropies) else ""
        raise Wrong("loss", f"{growth:,} bytes stay alive per step", cause=cause, advice="look at what the lists hold")
    return f"loss: {STEPS} entropies, and {growth} bytes stay alive per step"


def _healthy_losses():
    """Return (loss, entropy) of each step of the cured job."""
    job, losses = _job(loss=variant(exercises.cures)()[0]), []
    for _ in range(STEPS):
        losses.append(loss := job.loss(*next(job.batches)))
        job.backward(loss)
        job.update()
    return [(loss.item(), entropy.item()) for loss, entropy in zip(losses, job.entropies, strict=True)]


def _expect_loss(loss, expected, entropy, step):
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        cause = "a return is missing" if loss is None else ""
        raise Wrong("loss", f"returned {loss!r:.60} instead of the loss, a tensor of one element", cause=cause)
    if not isclose(loss.item(), expected, rel_tol=1e-4):
        cause = "this is the entropy" if isclose(loss.item(), entropy, rel_tol=1e-4) else ""
        advice = "print the loss of each step before and after your change: they have to be equal"
        raise Wrong("loss", f"{loss.item():.5f}", f"{expected:.5f}", f"the loss of step {step}", cause, advice)
    if not loss.requires_grad:
        raise Wrong("loss", "the loss has no graph, so that nothing can be trained", cause=NO_GRAPH)


def _expect_entropies(found, right):
    if len(found) != len(right):
        raise Wrong("loss", f"{len(found)} entropies", f"{len(right)}", f"after {len(right)} steps")
    for step, (entropy, expected) in enumerate(zip(found, right, strict=True)):
        where = f"the entropy of step {step}"
        if not isinstance(entropy, torch.Tensor):
            raise Wrong("loss", f"{entropy!r:.40}", "a tensor of one element", where)
        if entropy.numel() != 1:
            cause = "this is the entropy of each token; keep their mean"
            mean = isclose(entropy.mean().item(), expected, rel_tol=1e-4)
            raise Wrong("loss", f"{entropy.numel()} elements", "one element", where, cause * mean)
        if not isclose(entropy.item(), expected, rel_tol=1e-4):
            raise Wrong("loss", f"{entropy.item():.5f}", f"{expected:.5f}", where)


def _log(method):
    per_step = []

    def counted(self, loss):
        with Reads() as reads:
            method(self, loss)
        per_step.append(reads.count)

    job, right = _job(log=counted), []
    every = job.log_every
    for step in range(1, STEPS + 1):
        x, y = next(job.batches)
        loss = job.loss(x, y)
        right.append(loss.item())
        job.backward(loss)
        job.update()
        job.steps += 1
        job.log(loss)
        if step % every == 0:
            _expect_curve(job.curve, right, step, every)
    _expect_reads(per_step, every)
    return f"log: {STEPS} losses with {sum(per_step)} reads"


def _expect_curve(curve, right, step, every):
    where, cause = f"the curve after step {step}", _cause_of(curve, right, every)
    if any(isinstance(value, torch.Tensor) for value in curve):
        raise Wrong("log", "tensors", "floats", where, advice="a tensor's tolist() gives floats")
    if len(curve) != len(right):
        raise Wrong("log", f"{len(curve)} losses", str(len(right)), where, cause)
    for number, (value, expected) in enumerate(zip(curve, right, strict=True), 1):
        place = f"{where}, loss of step {number}"
        if not is_number(value):
            raise Wrong("log", f"{value!r:.60}", "a float", place, cause)
        if not isclose(value, expected, rel_tol=1e-6):
            raise Wrong("log", f"{value:.6g}", f"{expected:.6g}", place, cause)


def _cause_of(curve, right, every):
    """Return what is wrong with a curve, or ''."""
    latest, size = right[-every:], len(curve)
    if any(isinstance(value, list | tuple) for value in curve) and size < len(right):
        return "append adds the whole list as one entry: extend and += add its entries"
    if curve == right[every - 1 :: every]:
        return "only the losses of the steps in which the curve is due are there; the others are wanted, too"
    if size and size * every == len(right) and isclose(curve[-1], sum(latest) / every, rel_tol=1e-5):
        return "the mean of some steps is one entry; the loss of each step is wanted"
    if size < len(right) and curve == right[:size]:
        missing = len(right) - size
        said = "the loss of the last step is" if missing == 1 else f"the losses of the last {missing} steps are"
        return f"{said} missing: the curve is due whenever self.steps is a multiple of self.log_every"
    if size > len(right) and curve[: len(right) - every] == right[:-every] and curve[-every:] == latest:
        return "losses that were read are still in self.pending"
    if size < len(right) and curve == right[-size:]:
        return "the losses of earlier steps are no longer there: the curve has those of all steps"
    return "the losses are in reverse order" if curve == latest[::-1] else ""


def _expect_reads(per_step, every):
    most = len(per_step) // every
    if sum(per_step) <= most:
        return
    due = [count for step, count in enumerate(per_step, 1) if step % every == 0]
    cause = EVERY if all(per_step) else IN_A_LOOP if sum(due) == sum(per_step) else ""
    said = f"{sum(per_step)} reads in {len(per_step)} steps"
    raise Wrong("log", said, f"{most} at most", cause=cause, advice="print self.steps at each read")


def _job(**methods):
    return type("Job", (Patient,), methods)()


def _average(student, method):
    for ranks in (2, 3):
        case = f"average_gradients, {ranks} ranks"
        own = [
            ([torch.full(shape, float(1 + rank * (n + 1))) for n, shape in enumerate(SHAPES)],) for rank in range(ranks)
        ]
        right = [sum(float(1 + rank * (n + 1)) for rank in range(ranks)) / ranks for n in range(len(SHAPES))]
        run = on_practice_ranks(
            case,
            student,
            lambda _, comm, gradients: _on_rank(method, comm, gradients),
            own,
            ranks=practice_groups,
            errors=ERRORS,
        )
        for gradients, started, unwaited in run.results:
            if not started:
                raise Wrong(case, "0 collectives", "1", cause=NONE_STARTED)
            for n, (gradient, expected) in enumerate(zip(gradients, right, strict=True)):
                _expect_mean(case, n, gradient, expected, ranks)
            if started != 1:
                cause = PER_GRADIENT if started == len(SHAPES) else ""
                raise Wrong(case, f"{started} collectives", "1", cause=cause)
            if unwaited > 0:
                raise Wrong(case, "nobody waits for the collective", cause=NOT_WAITED)
    return f"average_gradients: one collective for {len(SHAPES)} gradients"


def _on_rank(method, comm, gradients):
    group = CountingGroup(comm)
    method(SimpleNamespace(group=group, gradients=lambda: list(gradients)))
    return gradients, group.started, group.unwaited


def _expect_mean(case, n, gradient, expected, ranks):
    if torch.allclose(gradient, torch.full_like(gradient, expected)):
        return
    value, first = gradient.flatten()[0].item(), 1.0
    causes = {
        expected * ranks: "it is the sum over the ranks, not the mean",
        expected / ranks: "start_mean divides already: this divides a second time",
        first: ALL_OF_THEM if n else NOT_WRITTEN,
    }
    raise Wrong(case, f"{value:g}", f"{expected:g}", f"gradient {n}", cause=causes.get(value, ""))
