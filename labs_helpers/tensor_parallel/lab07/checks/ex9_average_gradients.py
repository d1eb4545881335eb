"""Check exercise 9 of lab 07: the mean of every gradient, in one message, with the gradients unchanged."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.tree_causes import nearly, scaled
from labs_helpers.course.verdict.trees import Comparison, rounded
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.average_mistakes import causes, right
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import expect_anew, on_ranks
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import ERRORS as OF_GROUPS

ERRORS = (
    (r"x is written to", "in_place=True overwrites its argument, but the gradients must not change"),
    (r"0-d tensor", "a gradient may be one number, of shape (): numel() counts its elements"),
    (r"'list' object has no attribute|'list' and 'int'", "the operation takes one tensor, not a list of tensors"),
    (
        r"setStorage",
        "as_strided reads a part as if it had the gradient's memory layout; reshape reads row by row, whatever the "
        "strides are",
    ),
    (
        r"^IndexError: tuple index",
        "the gradients' numbers of dimensions differ, and one has none; use numel() and reshape(-1)",
    ),
    (r"name 'dp_(size|rank|comm|idx)'", "dp_group has rank and size"),
    *OF_GROUPS,
)
COSTLY = {
    "all_gather": "every rank receives all gradients; an all-gather sends p − 1 vectors, an all-reduce 2·(p − 1)/p",
    "reduce_scatter": "all_reduce does both in one call",
    "broadcast": "after an all_reduce all ranks already have the same means",
}
SHARED = "view, reshape, detach and split return tensors that share memory; return new tensors, even on one rank"
ADVICE = "take two ranks with gradients [1, 2] and [3]: what does each vector hold, and what returns?"
FEWER_BITS = "some step uses fewer bits than float32, such as bfloat16 or float16"
NOT_CUT = "the vector is not split into the gradients yet"
CONVERTED = "the answer converts it, or goes through a NumPy array of another dtype; the gradients are float32"
CASES = (  # name, dp_size, mp_size, shapes
    ("4 copies of a model of 2 ranks", 4, 2, [(4, 3), (5,), (), (2, 3, 2), (0, 4), (3, 2), (2,)]),
    ("3 ranks, whose gradients differ in memory order", 3, 1, [(2, 5), (1, 4), (), (3, 1), (1,), (6,)]),
    ("2 ranks, one gradient", 2, 1, [(3, 2)]),
    ("1 rank", 1, 1, [(3, 2), (4,)]),
)


@exercise("07/9", "average the gradients", points=10, minutes=15, reference=exercises.average_gradients)
def average_gradients(student):
    otherwise = (nearly(FEWER_BITS), scaled)  # the rounding error of a sum
    means = Comparison("rank {0}'s mean {1}", bound=rounded(16), slack=1e-4, otherwise=otherwise, advice=ADVICE)
    for case, dp_size, mp_size, shapes in CASES:
        gradients = [_draw(shapes, seed=rank) for rank in range(dp_size * mp_size)]
        run = on_ranks(case, student, _call, [(one, mp_size) for one in gradients], errors=ERRORS, kept=("gradients",))
        found = [one for one, *_ in run.results]
        for rank, one in enumerate(found):
            _expect_form(case, rank, one, gradients[rank])
        groups = [gradients[first::mp_size] for first in range(mp_size)]
        means.expect(case, found, right(groups), partial(causes, groups))
        nbytes = 4 * sum(one.numel() for one in gradients[0])
        for rank, (_, group, shared) in enumerate(run.results):
            if shared:
                raise Wrong(case, f"rank {rank}'s means share memory with its gradients", cause=SHARED)
            _expect_one_message(case, rank, group.calls, group.payload, nbytes * (dp_size > 1), len(shapes))
        if dp_size == 3:
            then = [([-one for one in own],) for own in gradients]
            expect_anew(f"{case}, two calls", student, _means, [(own,) for own in gradients], then)
        yield f"{case}: {len(shapes)} gradient{'s' * (len(shapes) > 1)}, {nbytes} bytes in one all-reduce"


def _draw(shapes: Sequence[tuple], seed: int) -> list[Tensor]:
    """Draw a rank's gradients from a normal distribution; those of shape (2,) are zero. seed: the rank.

    On even ranks matrices are transposed in memory. Tensors of three dimensions are permuted, and a vector at the end
    of the list is strided.
    """
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(shape, generator=generator) * (shape != (2,)) for shape in shapes]
    if seed % 2 == 0:
        made = [one.t().contiguous().t() if one.ndim == 2 else one for one in made]
    made = [one.permute(2, 0, 1).contiguous().permute(1, 2, 0) if one.ndim == 3 else one for one in made]
    if made[-1].ndim == 1:
        made[-1] = made[-1].repeat_interleave(2)[::2]
    return made


def _means(student, comm, gradients):
    return list(student(gradients, PracticeCommunication(comm)))


def _call(student, comm, gradients, mp_size):
    """Return the answer's result, the group with its counts, and whether result and gradients share memory."""
    group = PracticeCommunication(comm.Split(color=comm.rank % mp_size, key=comm.rank))
    found = student(gradients, group)
    memory = {one.untyped_storage().data_ptr() for one in gradients if one.numel()}
    tensors = [one for one in found if isinstance(one, Tensor)] if isinstance(found, list | tuple) else []
    shared = any(one.untyped_storage().data_ptr() in memory for one in tensors if one.numel())
    return found, group, shared


def _expect_form(case: str, rank: int, means, gradients: Sequence[Tensor]) -> None:
    """Raise Wrong unless a rank returned a list with one float32 tensor per gradient."""
    if not isinstance(means, list | tuple):
        kind, cause = f"a {type(means).__name__}", "make it a list with list(…)" * hasattr(means, "__next__")
        if means is None:
            kind, cause = "None", "the result is not returned"
        elif isinstance(means, Tensor):
            kind, cause = f"a tensor of shape {tuple(means.shape)}", NOT_CUT
        raise Wrong(case, f"rank {rank} returned {kind}; expected a list of tensors", cause=cause)
    if len(means) != len(gradients):
        left_out = "a gradient {} is left out; include it in the list"
        cause = NOT_CUT if len(means) == 1 else ""
        for what, kept in (("without elements", torch.numel), ("that is 0", torch.count_nonzero)):
            if [one.shape for one in gradients if kept(one)] == [getattr(one, "shape", ()) for one in means]:
                cause = left_out.format(what)
        some = f"{len(means)} tensor{'s' * (len(means) != 1)}"
        raise Wrong(case, f"rank {rank} returned {some}, expected {len(gradients)}, one per gradient", cause=cause)
    for i, one in enumerate(means):
        dtype = getattr(one, "dtype", type(one).__name__)
        if dtype != torch.float32:
            cause = "convert the array with torch.from_numpy" if isinstance(one, np.ndarray) else CONVERTED
            raise Wrong(case, f"rank {rank}'s mean {i} is {dtype}, expected torch.float32", cause=cause)


def _expect_one_message(case: str, rank: int, calls, payload, nbytes: int, count: int) -> None:
    """Raise Wrong unless a rank makes one all-reduce of at most `nbytes`, or none if that is 0."""
    if calls == ({"all_reduce": 1} if nbytes else {}) and payload.total() <= nbytes:
        return
    made = ", ".join(f"{times} × {name}, {payload[name]:,} bytes" for name, times in calls.items())
    found = f"the values are right, but rank {rank} makes {made}; one all_reduce of {nbytes:,} bytes is enough"
    cause = next((COSTLY[name] for name in calls if name in COSTLY), "")
    if not cause:
        cause = "the message has a wider dtype than float32, or more elements"
        if calls.total() > 1:
            cause = "it makes one all-reduce per gradient: " * (calls.total() == count)
            cause += "every message costs its latency"
    raise Wrong(case, found, cause=cause)
