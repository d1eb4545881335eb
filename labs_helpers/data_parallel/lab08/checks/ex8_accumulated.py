"""Exercise 8 of lab 08: micro-batches weighted by their samples, sent once, clipped as a whole."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial

import torch

from labs_helpers.communication.arrivals import Arrivals
from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.course.verdict.messages.distributed import TOUCHED
from labs_helpers.data_parallel.ddp.base import communication
from labs_helpers.data_parallel.ddp.hook import average, send
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.step_mistakes import close, gradients_of, mistakes, norms, right_step

CASES = (  # name, for each rank its micro-batches' samples, the largest norm
    ("2 ranks, 3 equal micro-batches, nothing to clip", [[4, 4, 4], [4, 4, 4]], 1e6),
    ("2 ranks, 3 equal micro-batches, clipped", [[4, 4, 4], [4, 4, 4]], 0.6),
    ("2 ranks, micro-batches of different sizes", [[5, 1, 3], [2, 4, 3]], 0.25),
    ("3 ranks, one micro-batch", [[4], [4], [4]], 1e6),
    ("1 rank", [[3, 2]], 0.5),
)
EARLY = "a backward pass outside of no_sync() sends: all but the last stand within it"
CHANGED = (
    "gradients are changed before finish(): what is under way belongs to the all-reduce; clip the mean, after finish()"
)
ERRORS = (
    (TOUCHED, EARLY),
    (r"negative|arrived twice", EARLY),
    (r"IndexError|pop from empty", "there may be one micro-batch alone"),
)


@exercise("08/8", "micro-batches and clipping", points=10, minutes=15, reference=exercises.accumulated)
def accumulated(student):
    passed = []
    for case, samples, max_norm in CASES:
        batches = [_draw(sizes, rank) for rank, sizes in enumerate(samples)]
        watched = {rank: {"passes": [], "finish": 0, "silent": False} for rank in range(len(samples))}
        try:
            own = [(mine, max_norm, watched[rank]) for rank, mine in enumerate(batches)]
            run = on_ranks(case, student, _call, own, errors=ERRORS, stuck=EARLY)
        except Wrong as wrong:
            if "TouchedTooEarly" in wrong.found and all(
                _silent(one) == _wanted(samples[0]) for one in watched.values()
            ):
                raise Wrong(case, wrong.found, cause=CHANGED) from None
            raise
        of_batches = [gradients_of(one) for one in batches]
        right = right_step(of_batches, samples, max_norm)
        for rank, (found, returned) in enumerate(run.results):
            if watched[rank]["changed"]:
                cause = "pop() and reverse() change a list, and *= a tensor: work on copies"
                raise Wrong(case, f"rank {rank}: micro_batches has to stay as it is", cause=cause)
            _expect_calls(case, rank, watched[rank], len(samples[rank]), run.of(rank))
            answers = [one[0] for one in run.results]
            if not close(found, right[0]):
                causes = likely(
                    still_possible(mistakes(of_batches, samples, max_norm), passed),
                    lambda answer, answers=answers: all(close(*pair) for pair in zip(answers, answer, strict=True)),
                )
                got, wanted = (", ".join(f"{x:.5g}" for x in one.tolist()[:3]) for one in (found, right[0]))
                raise Wrong(
                    case,
                    f"{got}, …",
                    f"{wanted}, …",
                    f"rank {rank}'s gradients",
                    causes,
                    "one rank, two micro-batches of 1 and 3 samples: work out the mean by hand",
                )
            _expect_norm(case, rank, returned, right[1], of_batches, samples, max_norm)
        passed.append(
            (
                list(mistakes(of_batches, samples, max_norm)),
                lambda answer, right=right: all(close(one, right[0]) for one in answer),
            )
        )
        one = "1 micro-batch" if len(samples[0]) == 1 else f"{len(samples[0])} micro-batches"
        yield f"{case}: {one}, {len(run.of(0))} messages, norm {right[1]:.3g}"


def _draw(sizes, rank):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(size, 5, generator=generator) + rank + i for i, size in enumerate(sizes)]


def _call(student, group, batches, max_norm, counted):
    weight, bias = torch.nn.Parameter(torch.linspace(-1, 1, 5)), torch.nn.Parameter(torch.tensor(0.3))
    model = torch.nn.Module()
    model.weight, model.bias = weight, bias
    finish, no_sync = _averaging([bias, weight], group)
    weight.register_post_accumulate_grad_hook(
        lambda _: counted["passes"].append((counted["silent"], counted["finish"]))
    )

    def counted_finish():
        finish()
        counted["finish"] += 1

    @contextmanager
    def counted_no_sync():
        with no_sync():
            counted["silent"] = True
            yield
        counted["silent"] = False

    def loss_of(batch):
        return (batch @ weight + bias).square().mean()

    given, before = list(batches), [batch.clone() for batch in batches]
    returned = student(given, loss_of, [weight, bias], counted_finish, counted_no_sync, max_norm)
    counted["changed"] = len(given) != len(before) or not all(map(torch.equal, given, before))
    grads = [torch.full_like(p, torch.nan) if p.grad is None else p.grad for p in (weight, bias)]
    return torch.cat([one.detach().reshape(-1).clone() for one in grads]), returned


def _averaging(parameters, group):
    """(finish, no_sync) by the library, as exercise 6 has them with a bucket per parameter: its reference is not in
    every hand-out."""
    arrivals = Arrivals([FlatBucket([p]) for p in parameters], partial(send, hook=average, group=communication(group)))
    return lambda: deque(arrivals.finish(), maxlen=0), arrivals.paused


def _expect_calls(case, rank, counted, batches, calls):
    passes = counted["passes"]
    if counted["finish"] != 1:
        text = f"rank {rank}: finish() is called {counted['finish']} times"
        cause = "finish() is missing after the last backward pass: nothing is averaged"
        if counted["finish"] > 1:
            cause = "finish() belongs after the loop: once per step"
        raise Wrong(case, text, cause=cause)
    if len(passes) != batches:
        cause = "a micro-batch is left out, or its loss has no graph any more"
        if len(passes) == 1:
            cause = (
                "each micro-batch has a backward pass of its own: else all their activations stay in memory until the "
                "end"
            )
        raise Wrong(
            case,
            f"rank {rank} makes {len(passes)} backward passes for {batches} micro-batches",
            cause=cause if len(passes) < batches else "a micro-batch is in the loop, and after it once more",
        )
    silent = _silent(counted)
    if any(done for _, done in passes):
        raise Wrong(
            case, f"rank {rank}: a backward pass comes after finish()", cause="finish() belongs after the last one"
        )
    if silent != _wanted(range(batches)):
        cause = EARLY
        if all(silent):
            cause = (
                "the last backward pass stands in no_sync() too: backward sends nothing, and all is left to finish()"
            )
        elif not any(silent):
            cause = "without no_sync() every backward pass sends"
        told = ["in no_sync()" if one else "sending" for one in silent]
        raise Wrong(case, f"rank {rank}'s backward passes: {', '.join(told)}", cause=cause)


def _silent(counted) -> list[bool]:
    """Of each backward pass, whether it stood in no_sync()."""
    return [one for one, _ in counted["passes"]]


def _wanted(batches) -> list[bool]:
    return [True] * (len(batches) - 1) + [False]


def _expect_norm(case, rank, returned, right, of_batches, samples, max_norm):
    try:
        value = float(returned)
    except (TypeError, ValueError):
        cause = "the norm is not returned" if returned is None else ""
        raise Wrong(
            case, f"rank {rank} returned {returned!r:.60}; the norm before clipping is asked for", cause=cause
        ) from None
    if not abs(value - right) <= 1e-4 * abs(right):  # which a NaN is not
        causes = likely(
            norms(of_batches, samples, max_norm, rank),
            lambda other: abs(value - other) <= 1e-4 * abs(other) or value != value and other != other,
        )
        raise Wrong(case, f"{value:.6g}", f"{right:.6g}", f"the norm that rank {rank} returns", causes)
