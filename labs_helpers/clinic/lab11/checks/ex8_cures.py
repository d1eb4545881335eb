"""Check exercise 8 of lab 11: three cured methods, by what they keep, read and start."""

from types import SimpleNamespace

import torch

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks.patients import CountingGroup, Patient, Reads
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_tuple, on_practice_ranks, one_thread
from labs_helpers.measure.peak_memory import Alive
from labs_helpers.practice.groups import practice_groups

STEPS = 8
KEPT = 64  # bytes that a step may leave alive, besides those of other steps
SHAPES = ((3, 4), (5,), (2, 2, 2), (1,))
GRAPH = "the entropy still refers to its graph, and the graph to the activations: detach the entropy"
IN_A_LOOP = "each value is a read of its own: put the losses into one tensor, and read that once"
EVERY = "the loss is read in every step: keep it in self.pending until the curve is due"
PER_GRADIENT = "it starts a collective per gradient: start_mean takes all of them at once"
NOT_WAITED = "the request has to be waited for, or the optimizer may use gradients that are not there yet"


@exercise("11/8", "three cures", points=20, minutes=30, reference=exercises.cures)
def cures(student):
    methods = expect_tuple("", student(), "loss", "log", "average_gradients")
    for name, method in zip(("loss", "log", "average_gradients"), methods, strict=True):
        if not callable(method):
            raise Wrong("", f"{name} is {method!r:.60} instead of a method")
    for name, judge, method in zip(("loss", "log"), (_loss, _log), methods[:2], strict=True):
        try:
            with one_thread():
                line = judge(method)
        except Wrong:
            raise
        except Exception as error:
            raise describe_error(student, error, name) from None
        yield line
    yield _average(student, methods[2])


def _loss(method):
    job, healthy = _job(loss=method), _job(loss=exercises.cures()[0])
    alive = []
    with Alive(()) as memory:
        for step in range(STEPS):
            x, y = next(job.batches)
            torch.manual_seed(step)
            loss = job.loss(x, y)
            if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
                cause = "only the entropy is detached: training needs the loss's graph"
                raise Wrong("loss", "the loss has no graph", cause=cause * isinstance(loss, torch.Tensor))
            job.backward(loss)
            job.update()
            del loss
            alive.append(memory.alive)
    for _ in range(STEPS):
        healthy.backward(healthy.loss(*next(healthy.batches)))
        healthy.update()
    _expect_entropies(job.entropies, healthy.entropies)
    growth = (alive[-1] - alive[STEPS // 2 - 1]) // (STEPS // 2)
    if growth > KEPT:
        cause = GRAPH if any(entropy.requires_grad for entropy in job.entropies) else ""
        raise Wrong("loss", f"{growth:,} bytes stay alive per step", cause=cause, advice="look at what the lists hold")
    return f"loss: {STEPS} entropies, and {growth} bytes stay alive per step"


def _expect_entropies(found, right):
    if len(found) != len(right):
        raise Wrong("loss", f"{len(found)} entropies", f"{len(right)}", f"after {len(right)} steps")
    for step, (entropy, expected) in enumerate(zip(found, right, strict=True)):
        if not isinstance(entropy, torch.Tensor):
            cause = "to make a number of it, the program reads it from the device" * isinstance(entropy, float)
            raise Wrong(
                "loss", f"{entropy!r:.40}", "a tensor of one element", f"the entropy of step {step}", cause=cause
            )
        if entropy.numel() != 1 or not torch.allclose(entropy.detach().reshape(()), expected, rtol=1e-4):
            raise Wrong("loss", f"{entropy.detach()!r:.60}", f"{expected:.5f}", f"the entropy of step {step}")


def _log(method):
    per_step, kept = [], 0

    def counted(self, loss):
        nonlocal kept
        with Reads() as reads:
            method(self, loss)
        per_step.append(reads.count)
        kept += any(isinstance(one, torch.Tensor) and one.requires_grad for one in self.pending)

    job, right = _job(log=counted), []
    every = job.log_every
    for step in range(1, STEPS + 1):
        before = len(job.curve)
        x, y = next(job.batches)
        loss = job.loss(x, y)
        right.append(loss.item())
        job.backward(loss)
        job.update()
        job.steps += 1
        job.log(loss)
        if step % every == 0:
            _expect_curve(job.curve, right, step, before)
    _expect_reads(per_step, every)
    if kept:
        raise Wrong("log", "a loss in self.pending has its graph", cause="the graph keeps activations alive: detach")
    return f"log: {STEPS} losses with {sum(per_step)} reads"


def _expect_curve(curve, right, step, before):
    where = f"the curve after step {step}"
    if any(isinstance(value, torch.Tensor) for value in curve):
        raise Wrong("log", "tensors", "floats", where, advice="a tensor's tolist() gives floats")
    if len(curve) != len(right):
        repeated = len(curve) > len(right) and before and curve[before : before + before] == curve[:before]
        cause = "losses that were read are still in self.pending" if repeated else ""
        raise Wrong("log", f"{len(curve)} losses", str(len(right)), where, cause=cause)
    for number, (value, expected) in enumerate(zip(curve, right, strict=True), 1):
        if not abs(value - expected) <= 1e-6 * abs(expected):
            cause = "the losses are in reverse order" if curve[::-1] == right else ""
            raise Wrong("log", f"{value:.6g}", f"{expected:.6g}", f"{where}, loss of step {number}", cause=cause)


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
            case, student, lambda _, comm, gradients: _on_rank(method, comm, gradients), own, ranks=practice_groups
        )
        for gradients, started, unwaited in run.results:
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
        first: "the gradient itself does not change: write the mean into it",
    }
    raise Wrong(case, f"{value:g}", f"{expected:g}", f"gradient {n}", cause=causes.get(value, ""))
