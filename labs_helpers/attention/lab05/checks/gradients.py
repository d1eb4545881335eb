"""Check a kernel's gradients: their values, their writers, and how often the kernel loads its operands."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from labs_helpers.attention.lab04.checks.explaining import explaining
from labs_helpers.attention.lab04.checks.results import expect_nothing_beside
from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.attention.lab05.checks.bounds import WHY, gradient_bounds
from labs_helpers.attention.lab05.checks.cases import CASES
from labs_helpers.attention.lab05.checks.causes import gradient_causes
from labs_helpers.course.verdict import Run, Wrong, expect_close, expect_dtype, one_thread, run_watched
from labs_helpers.course.verdict.advice import print_it
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.course.verdict.compare import is_within
from labs_helpers.course.verdict.left_alone import expect_new_results

LETTERS = {"q": "Q", "k": "K", "v": "V", "do": "dO", "lse": "lse", "delta": "delta"}


def kernel_trial(student, names, once, walked, most, surplus: str) -> Iterator[str]:
    """Check the gradients `names` ('dq', …) in each of CASES, yield the case's name, and return the last Run.

    Raises Wrong. Each row of the operands `once` has to be loaded once, and row r of the operands `walked` at most
    `most(exact pass)[r]` times. surplus: the likely cause of more loads.
    """
    passed: dict[str, list] = {name: [] for name in names}
    for case in CASES:
        given, exact = case.operands()
        run = run_watched(case.name, student, **given, causal=case.causal, **case.blocks)
        run.expect_alone()
        exact, values = in_tiles(run, exact), expect_tensors(case.name, run.value, names, exact)
        for name, value in reversed(
            list(zip(names, values, strict=True))
        ):  # dV before dK, because it depends only on P
            expect_gradient(run, name, value, exact, case.dtype, passed[name])
        expect_nothing_stored(run, [*given.values(), *values])
        if case is CASES[0]:
            expect_new_results(case.name, run.value, partial(student, **given, causal=case.causal, **case.blocks))
        for name in once:
            why = f"each tile of {LETTERS[name]} belongs to one program, which keeps it"
            run.expect_loads(LETTERS[name], given[name], 1, why)
        for name in walked:
            expect_at_most(run, LETTERS[name], given[name], most(exact), surplus if case.causal else "")
        yield case.name
    return run


def expect_tensors(case: str, answer, names, exact: BackwardPass) -> tuple[torch.Tensor, ...]:
    """Return the gradients `names` from `answer`; raise Wrong unless it has the right number of tensors and shapes."""
    values = tuple(answer) if len(names) > 1 and isinstance(answer, (tuple, list)) else (answer,)
    asked = ", ".join(NAMES[name] for name in names)
    if len(values) != len(names) or not all(isinstance(x, torch.Tensor) for x in values):
        raise Wrong(case, f"returned {type(answer).__name__}; return ({asked})")
    shapes = [tuple(getattr(exact, name).shape) for name in names]
    if [tuple(x.shape) for x in values] != shapes and sorted(tuple(x.shape) for x in values) == sorted(shapes):
        found = " and ".join("×".join(map(str, x.shape)) for x in values)
        raise Wrong(case, f"returned tensors of {found}", cause=f"the order is wrong; return ({asked})")
    return values


def in_tiles(run: Run, exact: BackwardPass) -> BackwardPass:
    """Return `exact` with the tile sizes of the last launch."""
    constants = run.launches[-1].constexprs
    return exact.but(BLOCK_M=constants.get("BLOCK_M", 64), BLOCK_N=constants.get("BLOCK_N", 64))


def expect_gradient(run: Run, name: str, value, exact: BackwardPass, dtype, passed: list) -> None:
    """Raise Wrong unless `value` is the gradient `name` and a kernel stores each of its elements once.

    passed: the causes of earlier cases, each with a test of right answers.
    """
    run = replace(run, case=f"{run.case}: {NAMES[name]}", value=value)
    if run.meter and not run.meter.knows(value):
        raise Wrong(run.case, f"no kernel was given {NAMES[name]}; PyTorch computed it")
    run.expect_written_once(NAMES[name])
    expect_dtype(run, dtype, "the inputs have that dtype")
    bound, right = gradient_bounds(exact, dtype)[name], getattr(exact, name)
    causes = partial(gradient_causes, exact, name, run.launches[-1].kernel)
    known = ((earlier(), is_right) for earlier, is_right in passed)
    possible = still_possible(explaining(causes(), value, right, bound), known)
    with one_thread():  # with small products, several threads mostly wait for each other
        expect_close(run.case, value, right, bound, WHY, possible, advice=partial(print_it, run.launches, value))
    passed.append((causes, partial(is_within, expected=right, bound=bound)))


def expect_nothing_stored(run: Run, known) -> None:
    """Raise Wrong if the kernel stores S, P or dS."""
    if run.meter:
        tensors = [x for x in known if isinstance(x, torch.Tensor)]
        expect_nothing_beside(run, tensors, "recompute S, P, dP and dS one tile at a time, and never store them")


def expect_at_most(run: Run, name: str, tensor, most: torch.Tensor, surplus: str) -> None:
    """Raise Wrong if row r of `tensor`, (B, H, L, …), is loaded more than most[r] times, or if no row is loaded."""
    if (counts := run.counts(tensor)) is None:
        return
    loads = torch.from_numpy(counts.loads)
    if not loads.any():
        raise Wrong(run.case, f"{name} was never loaded; the kernel was given another tensor")
    rows = loads.reshape(*loads.shape[:3], -1).amax((0, 1, 3))
    if (rows > most).any():
        r = int((rows - most).argmax())
        again = f"{name} is loaded twice in each step" if bool((rows == 2 * most).all()) else surplus
        found = f"row {r} of {name} is loaded {rows[r]} times, expected {most[r]}"
        raise Wrong(
            run.case, found, cause=again, advice=f"which programs load row {r} of {name}, and which programs need it?"
        )
