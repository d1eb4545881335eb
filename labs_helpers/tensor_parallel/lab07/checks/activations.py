"""Judge the results of exercises 4 and 6: values, memory layout, dtype, and the cost of communication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from labs_helpers.course.verdict import Wrong, on_real_ranks
from labs_helpers.course.verdict.tree_causes import moved
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.practice.groups import GroupRun
from labs_helpers.tensor_parallel.lab07.checks.activation_cases import SHAPE, Asked, Case, inputs_of, laid_out
from labs_helpers.tensor_parallel.lab07.checks.activation_mistakes import ROWS, Array, common
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import WORLD, expect_anew, of_world, on_ranks

FLOAT64 = "np.empty and np.zeros create float64 arrays unless you pass a dtype"
FRACTION = "integers become float64 when you combine them with a float or divide with /; keep them integers"
ORDER = (
    "its memory order differs from the order of its axes: it is a view (transpose, moveaxis, a slice), a copy that "
    "keeps a view's order (np.copy, np.array), or an array with order='F'"
)
AS_IT_LIES = (
    "the array that you send is not in C order, and MPI sends it in memory order; np.ascontiguousarray reorders it"
)
_WHOLE = "an all-reduce sends twice the bytes of an all-gather or a reduce-scatter"
_ROOT = "all parts go through one rank, and the others wait for it"
COSTLY = dict.fromkeys(("Allreduce", "allreduce"), _WHOLE) | {
    **dict.fromkeys(("gather", "Gather", "reduce", "Reduce"), _ROOT),
    **dict.fromkeys(("Bcast", "bcast"), "one broadcast per rank: each costs its latency while the other ranks wait"),
    **dict.fromkeys(
        ("Allgather", "allgather"),
        "every rank receives the whole gradients of all ranks: p times the bytes of a reduce-scatter",
    ),
}


def activation_lines(student: Callable, asked: Asked, cases: Sequence[Case]) -> Iterator[str]:
    """Yield one line per case in which the student's function is right, then one for real ranks; raise Wrong."""
    otherwise = (lambda difference: of_world(student), moved)
    comparison = Comparison("rank {0}'s result", otherwise=otherwise, advice=asked.advice)
    seen: set[np.dtype] = set()  # dtypes of results that were right
    for case in cases:
        inputs = inputs_of(asked, case)
        own = [(laid_out(array, case.order), case.mp_size) for array in inputs]
        run = on_ranks(case.name, student, _call, own, errors=asked.errors, kept=(asked.name,))
        found = run.results
        _expect_values(comparison, asked, case, found, [array for array, _ in own])
        _expect_form(asked, case, found, seen)
        _expect_cost(asked, case, run, inputs[0].nbytes * (1 if asked.whole else case.mp_size))
        seen.add(found[0].dtype)
        given, made = (" × ".join(map(str, array.shape)) for array in (inputs[0], found[0]))
        yield f"{case.name}: {given} → {made}"
    case = Case("4 ranks, 2 models, two calls", 4, 2, SHAPE, np.float32)
    own = [(array, 2) for array in inputs_of(asked, case)]
    yield expect_anew(case.name, student, _call, own, [(-array, 2) for array, _ in own])
    case = case._replace(name="the same function on 4 real ranks, 2 models")
    found = on_real_ranks(case.name, student, _call, own, cause=of_world(student))
    _expect_values(comparison, asked, case, found, [array for array, _ in own])
    _expect_form(asked, case, found, seen)
    yield case.name


def _call(student, comm, array, mp_size):
    """Return the result on a rank; mp_size neighboring ranks share a model."""
    return student(array, comm.Split(color=comm.rank // mp_size, key=comm.rank), mp_size)


def _of_all(inputs: list[Array], mp_size: int, function: Callable) -> list[Array]:
    """function(parts, i) on each rank."""
    models = [np.stack(inputs[first : first + mp_size]) for first in range(0, len(inputs), mp_size)]
    return [function(parts, i) for parts in models for i in range(mp_size)]


def _expect_values(comparison: Comparison, asked: Asked, case: Case, found: Sequence, inputs: list[Array]) -> None:
    for rank, array in enumerate(found):
        if not isinstance(array, np.ndarray):
            kind, cause = f"a {type(array).__name__}", asked.nothing if array is None else ""
            if isinstance(array, list | tuple) and all(isinstance(one, np.ndarray) for one in array):
                kind, cause = f"{kind} of {len(array)} arrays", asked.several
            kind = "None" if array is None else kind
            raise Wrong(case.name, f"rank {rank} returned {kind}; expected an array", cause=cause)

    def causes():
        for sentence, mistake in (*asked.mistakes(), *common(asked.name, asked.right)):
            if "float" not in sentence or inputs[0].dtype.kind == "i":
                yield sentence, partial(_of_all, inputs, case.mp_size, mistake)
        if not inputs[0].flags.c_contiguous:
            lying = [array.ravel("K").reshape(array.shape) for array in inputs]
            sent = dict(asked.mistakes())[ROWS] if asked.whole else asked.right
            yield AS_IT_LIES, partial(_of_all, lying, case.mp_size, sent)

    def place(value) -> str:
        """Return ', x[0, 1, 2] of rank 3' for a value that the ranks' inputs contain."""
        for rank, array in enumerate(inputs):
            if len(at := np.argwhere(array == value)):
                return f", {asked.name}{list(map(int, at[0]))} of rank {rank}"
        return ""

    comparison.expect(case.name, list(found), _of_all(inputs, case.mp_size, asked.right), causes, place)


def _expect_form(asked: Asked, case: Case, found: Sequence[Array], seen: set[np.dtype]) -> None:
    """Raise Wrong unless all results have the input's dtype and are contiguous in C order or in the input's order."""
    for rank, array in enumerate(found):
        if array.dtype != case.dtype:
            of = f"rank {rank}'s result is {array.dtype}, expected {np.dtype(case.dtype)}, the dtype of {asked.name}"
            cause = (f"some call specifies {array.dtype}; use {asked.name}.dtype, which fits every input",)
            if array.dtype == np.float64:
                whole = np.dtype(case.dtype).kind == "i" and np.dtype(np.float32) in seen
                cause = (FRACTION,) if whole else (FLOAT64, *cause)
            raise Wrong(case.name, of, cause=cause)
        if not (array.flags.c_contiguous or case.order == "F" and array.flags.f_contiguous):
            said = f"rank {rank}'s result is not contiguous: shape {array.shape}, strides {array.strides}"
            raise Wrong(case.name, said, cause=ORDER, advice="make it contiguous with np.ascontiguousarray")


def _expect_cost(asked: Asked, case: Case, run: GroupRun, nbytes: int) -> None:
    """Raise Wrong unless the ranks of each model made one collective, of a cheap kind and of at most nbytes."""
    for first in range(0, case.ranks, case.mp_size):
        group = tuple(range(first, first + case.mp_size))
        listed, calls = ", ".join(map(str, group)), [call for call in run.calls if set(call.ranks) & set(group)]
        if other := next((call for call in calls if call.ranks != group), None):
            others = ", ".join(map(str, other.ranks))
            found = f"{other.name} of ranks {others}; the ranks of this model are {listed}"
            raise Wrong(case.name, found, cause=WORLD)
        one = len(calls) == 1 and calls[0].name in asked.cheap and calls[0].nbytes <= nbytes
        if one or len(calls) < len(group) == 1:
            continue
        counted = Counter(call.name + (f" of {call.nbytes:,} bytes" if call.nbytes else "") for call in calls)
        made = ", ".join(f"{times} × {name}" for name, times in counted.items()) or "no collective"
        costly = (COSTLY[call.name] for call in calls if call.name in COSTLY and call.name not in asked.cheap)
        other = "every collective costs its latency" if len(calls) > 1 else ""
        cause = next(costly, "") or other or "the message has a wider dtype than the input, or more elements"
        enough = f"one {asked.cheap[0]} of {nbytes:,} bytes is enough"
        found = f"the values are right, but ranks {listed} make {made}; {enough}"
        raise Wrong(case.name, found, cause=cause, advice="count the bytes that leave each rank")
