"""Check exercise 8 of lab 08: weight micro-batches by their samples, send once, and clip all gradients together."""

from collections import deque
from contextlib import contextmanager
from functools import partial
from itertools import count

import numpy as np
import torch

from labs_helpers.communication.arrivals import Arrivals
from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.distributed import TOUCHED
from labs_helpers.course.verdict.tree_causes import scaled
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.data_parallel.ddp.base import communication
from labs_helpers.data_parallel.ddp.hook import average, send
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.step_mistakes import gradients_of, mistakes, norms, right_step

CASES = (  # name, the samples of each rank's micro-batches, max_norm
    ("2 ranks, 3 equal micro-batches, nothing to clip", [[4, 4, 4], [4, 4, 4]], 1e6),
    ("2 ranks, 3 equal micro-batches, clipped", [[4, 4, 4], [4, 4, 4]], 0.6),
    ("2 ranks, micro-batches of different sizes", [[5, 1, 3], [2, 4, 3]], 0.25),
    ("3 ranks, one micro-batch", [[4], [4], [4]], 1e6),
    ("1 rank", [[3, 2]], 0.5),
)
SILENT = "in no_sync()"  # the kind of a backward pass; the other kind is "sending"
EARLY = "a backward pass outside of no_sync() sends: run all but the last one inside"
CHANGED = "gradients change while they are being sent to the other ranks: clip the mean, after finish()"
ALL_SILENT = "the last backward pass is in no_sync() too: backward sends nothing, and finish() has to send everything"
TOGETHER = "run forward and backward before the next micro-batch; otherwise, all activations stay in memory"
ERRORS = (
    (TOUCHED, EARLY),
    (r"negative|arrived twice", EARLY),
    (r"IndexError|pop from empty", "there may be only one micro-batch"),
)
ADVICE = "for one rank and two micro-batches of 1 and 3 samples, calculate the mean by hand"


def float32_sums(found, right: np.ndarray) -> float:
    """Return a bound for the rounding errors of a backward pass in float32."""
    return 2.5e-5 * np.abs(right).max()


@exercise("08/8", "micro-batches and clipping", points=10, minutes=15, reference=exercises.accumulated)
def accumulated(student):
    of_grads = Comparison("rank {0}'s gradients", bound=float32_sums, otherwise=(scaled,), advice=ADVICE)
    of_norm = Comparison("the norm that rank {0} returns", bound=float32_sums)
    for case, samples, max_norm in CASES:
        batches = [_draw(sizes, rank) for rank, sizes in enumerate(samples)]
        watched = [[] for _ in samples]
        try:
            own = [(mine, max_norm, seen) for mine, seen in zip(batches, watched, strict=True)]
            run = on_ranks(case, student, _call, own, errors=ERRORS, stuck=EARLY)
        except Wrong as wrong:
            if "TouchedTooEarly" in wrong.found and all(seen == _passes(samples[0]) for seen in watched):
                raise Wrong(case, wrong.found, cause=CHANGED) from None
            raise
        for rank, seen in enumerate(watched):
            _expect_calls(case, rank, seen, _passes(samples[rank]))
        of_batches = [gradients_of(one) for one in batches]
        found, returned = zip(*run.results, strict=True)
        right, norm = right_step(of_batches, samples, max_norm)
        of_grads.expect(case, list(found), right, partial(mistakes, of_batches, samples, max_norm))
        returned = [_number(case, rank, one) for rank, one in enumerate(returned)]
        of_norm.expect(case, returned, [norm] * len(samples), partial(norms, of_batches, samples, max_norm))
        many = f"{len(samples[0])} micro-batch{'es' * (len(samples[0]) > 1)}"
        yield f"{case}: {many}, {len(run.of(0))} messages, norm {norm:.3g}"


def _draw(sizes, rank):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(size, 5, generator=generator) + rank + i for i, size in enumerate(sizes)]


def _call(student, group, batches, max_norm, seen):
    weight, bias = torch.nn.Parameter(torch.linspace(-1, 1, 5)), torch.nn.Parameter(torch.tensor(0.3))
    finish, no_sync = _averaging([bias, weight], group)
    how = ["sending"]
    weight.register_post_accumulate_grad_hook(lambda _: seen.append(how[-1]))

    def counted_finish():
        finish()
        seen.append("finish")

    @contextmanager
    def counted_no_sync():
        with no_sync():
            how.append(SILENT)
            yield
        how.pop()

    calls = count()

    def loss_of(batch):
        if torch.is_grad_enabled() and next(calls) > len(seen):
            raise Wrong("", "calls loss_of before the previous micro-batch's backward pass", cause=TOGETHER)
        if len(batch) > max(map(len, batches)):
            raise Wrong("", "calls loss_of with more samples than any micro-batch has", cause=TOGETHER)
        return (batch @ weight + bias).square().mean()

    given, before = list(batches), [batch.clone() for batch in batches]
    returned = student(given, loss_of, [weight, bias], counted_finish, counted_no_sync, max_norm)
    if len(given) != len(before) or not all(map(torch.equal, given, before)):
        cause = "pop() and reverse() change a list, and *= a tensor: work on copies"
        raise Wrong("", "has changed micro_batches", cause=cause)
    grads = [torch.full_like(p, torch.nan) if p.grad is None else p.grad for p in (weight, bias)]
    return torch.cat([one.detach().reshape(-1).clone() for one in grads]), returned


def _averaging(parameters, group):
    """Return the library's (finish, no_sync) with one bucket per parameter, like exercise 6.

    Some hand-outs lack the reference of exercise 6.
    """
    arrivals = Arrivals([FlatBucket([p]) for p in parameters], partial(send, hook=average, group=communication(group)))
    return lambda: deque(arrivals.finish(), maxlen=0), arrivals.paused


def _expect_calls(case, rank, seen, wanted):
    passes, finished = [one for one in seen if one != "finish"], seen.count("finish")
    if finished != 1:
        cause = "call finish() after the loop, once per step"
        if not finished:
            cause = "finish() is missing after the last backward pass, so nothing is averaged"
        raise Wrong(case, f"rank {rank}: finish() is called {finished} times", cause=cause)
    if len(passes) != len(wanted):
        cause = "a micro-batch is processed in the loop, and again after it"
        if len(passes) < len(wanted):
            cause = "a micro-batch is left out, or its loss is detached from the graph"
        found = f"rank {rank} makes {len(passes)} backward passes for {len(wanted)} micro-batches"
        raise Wrong(case, found, cause=cause)
    if seen[-1] != "finish":
        cause = "call finish() after the last backward pass"
        raise Wrong(case, f"rank {rank}: a backward pass comes after finish()", cause=cause)
    if passes != wanted:
        cause = EARLY if SILENT in passes else "without no_sync() every backward pass sends"
        cause = cause if "sending" in passes else ALL_SILENT
        raise Wrong(case, f"rank {rank}'s backward passes: {', '.join(passes)}", cause=cause)


def _passes(batches) -> list[str]:
    """Return the right kind of each backward pass."""
    return [SILENT] * (len(batches) - 1) + ["sending"]


def _number(case, rank, returned) -> float:
    try:
        return float(returned)
    except (TypeError, ValueError):
        cause = "the norm is not returned" if returned is None else ""
        found = f"rank {rank} returned {returned!r:.60} instead of the norm before clipping"
        raise Wrong(case, found, cause=cause) from None
