"""Exercise 9 of lab 07: the mean of every gradient, in one message, and the gradients as they were."""

from functools import partial

import torch

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.average_causes import COSTLY, ERRORS, causes
from labs_helpers.tensor_parallel.lab07.checks.gradient_lists import as_means, comparison_of_means, draw, expect_form
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks

SHARED = (
    "view, reshape, detach and split give tensors on the same memory; with one rank, too, the means are new tensors"
)


@exercise("07/9", "average the gradients", points=10, minutes=15, reference=exercises.average_gradients)
def average_gradients(student):
    means = comparison_of_means()
    for case, dp_size, mp_size, shapes in (
        ("4 copies of a model of 2 ranks", 4, 2, [(4, 3), (5,), (), (2, 3, 2), (0, 4), (3, 2), (2,)]),
        ("3 ranks, whose gradients lie differently in memory", 3, 1, [(2, 5), (1, 4), (), (3, 1), (1,), (6,)]),
        ("2 ranks, one gradient", 2, 1, [(3, 2)]),
        ("1 rank", 1, 1, [(3, 2), (4,)]),
    ):
        gradients = [draw(shapes, seed=rank) for rank in range(dp_size * mp_size)]
        run = on_ranks(case, student, _call, [(one, mp_size) for one in gradients], errors=ERRORS, kept=("gradients",))
        found, calls, payloads, shared = zip(*run.results, strict=True)
        expect_form(case, found, gradients[0])
        groups = [gradients[first::mp_size] for first in range(mp_size)]
        right = [as_means(groups[rank % mp_size]) for rank in range(len(gradients))]
        means.expect(case, found, right, partial(causes, groups, mp_size))
        for rank, is_shared in enumerate(shared):
            if is_shared:
                raise Wrong(case, f"rank {rank}'s means share memory with its gradients", cause=SHARED)
        nbytes = 4 * sum(one.numel() for one in gradients[0])
        _expect_one_message(case, calls, payloads, nbytes * (dp_size > 1), len(shapes))
        yield f"{case}: {len(shapes)} gradient{'s' * (len(shapes) > 1)}, {nbytes} bytes in one all-reduce"


def _call(student, comm, gradients, mp_size):
    """What it returned, which collectives it called, their bytes, and whether it returned the gradients' memory."""
    group = PracticeCommunication(comm.Split(color=comm.rank % mp_size, key=comm.rank))
    found = student(gradients, group)
    memory = {one.untyped_storage().data_ptr() for one in gradients if one.numel()}
    parts = found if isinstance(found, list | tuple) else [found]
    tensors = [one for one in parts if isinstance(one, torch.Tensor) and one.numel()]
    shared = any(one.untyped_storage().data_ptr() in memory for one in tensors)
    return found, dict(group.calls), dict(group.payload), shared


def _expect_one_message(case: str, calls, payloads, nbytes: int, count: int) -> None:
    """calls, payloads: each rank's, by the name of the collective. nbytes: of the one all-reduce; 0 for none."""
    for rank, (called, payload) in enumerate(zip(calls, payloads, strict=True)):
        if called == ({"all_reduce": 1} if nbytes else {}) and sum(payload.values()) <= nbytes:
            continue
        made = ", ".join(f"{times} × {name}, {payload[name]:,} bytes" for name, times in called.items())
        found = f"the values are right, but rank {rank} makes {made}; one all_reduce of {nbytes:,} bytes is enough"
        cause = next((COSTLY[name] for name in called if name in COSTLY), COSTLY["wider"])
        if set(called) == {"all_reduce"} and called["all_reduce"] > 1:
            each = called["all_reduce"] == count
            cause = COSTLY["each" if each else "several"]
        raise Wrong(case, found, cause=cause)
