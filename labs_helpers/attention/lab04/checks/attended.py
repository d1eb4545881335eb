"""Check a kernel of attention: its O, its log-sum-exp and its loads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import torch

from labs_helpers.attention.lab04.checks.causes import loop_causes
from labs_helpers.attention.lab04.checks.exact import Exact
from labs_helpers.attention.lab04.checks.explaining import explaining
from labs_helpers.attention.lab04.checks.mask_causes import mask_causes
from labs_helpers.attention.lab04.checks.operands import SCALE
from labs_helpers.attention.lab04.checks.results import expect_nothing_beside, expect_parts
from labs_helpers.attention.lab04.checks.visited import expect_visits
from labs_helpers.attention.tile_map import SKIPPED, tile_states, visible
from labs_helpers.course.verdict import Candidates, Run, check_tensor_cores, expect_close, one_thread, run_watched
from labs_helpers.course.verdict.advice import print_it
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.course.verdict.left_alone import expect_new_results
from labs_helpers.course.visits import row_loads

WHY = "float32 sums, P and O rounded once"


@dataclass
class Trial:
    """A check of one attention kernel, case by case. Cases that have passed rule out causes in later cases."""

    student: Callable
    causal: bool
    passed: list = field(default_factory=list)  # (name, its causes, test of right answers)
    walks: list = field(default_factory=list)  # (walks of common mistakes, test of right walks)

    def attend(self, case: str, tensors, BLOCK_M: int, BLOCK_N: int, *window: int) -> Run:
        """Compare `student(q, k, v, *window, SCALE, …)` with float64 and check its loads and stores; raises Wrong."""
        q, k, v = tensors
        seen = visible(q.shape[2], k.shape[2], self.causal, *window)
        with row_loads(k) as loaded:
            run = run_watched(case, self.student, q, k, v, *window, SCALE, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
        run.expect_alone()
        shapes = {"o": (q.shape, q.dtype), "lse": (q.shape[:3], torch.float32)}
        o, lse = expect_parts(case, run.value, shapes)
        for name, tensor, rows in (("O", o, "(head * Lq + rows) * D"), ("lse", lse, "head * Lq + rows")):
            overlapping = f"each head has its own rows of {name}: {rows}, with rows from program_id(0) * BLOCK_M"
            for part in _matrices(tensor):
                replace(run, value=part).expect_written_once(name, overlapping)
        if run.meter:
            expect_nothing_beside(run, (q, k, v, o, lse), "keep the tiles of S and P on the chip")
            run.expect_loads("Q", q, 1, "each program loads its own rows once, before the loop")
            expect_visits(run, loaded, seen, k, v, BLOCK_M, BLOCK_N, window[0] if window else None, self.walks)
        exact = Exact(q, k, v, SCALE, torch.from_numpy(seen))
        bounds = exact.bounds(q.dtype)
        causes = partial(self.causes, exact=exact, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, window=window)
        for name, found, title in (("lse", lse, "log-sum-exp"), ("o", o, "O")):
            expected, bound, advice = getattr(exact, name), bounds[name], partial(print_it, run.launches, found)
            right = partial(_is_right, expected=expected, bound=bound)
            known = ((earlier(name, found=None), is_right) for of, earlier, is_right in self.passed if of == name)
            possible = explaining(still_possible(causes(name, found=(o, lse)), known), found, expected, bound)
            expect_close(case, found, expected, bound, WHY, possible, title, advice)
            self.passed.append((name, causes, right))
        return run

    def causes(self, name: str, exact: Exact, found, BLOCK_M: int, BLOCK_N: int, window) -> Candidates:
        of_loop = loop_causes(name, exact, found, BLOCK_M, BLOCK_N)
        if not self.causal:
            return of_loop
        return chain(mask_causes(name, exact, found, BLOCK_M, BLOCK_N, *window or [torch.inf]), of_loop)


def attention_cases(student, cases, causal: bool) -> Iterator[str]:
    """Check a kernel on all cases and return the last Run.

    A case is (name, (q, k, v), BLOCK_M, BLOCK_N), with a window size at the end for a sliding window.
    """
    trial = Trial(student, causal)
    tiles = visited = 0
    for case, tensors, BLOCK_M, BLOCK_N, *window in cases:
        with one_thread():  # with small products, several threads mostly wait for each other
            run = trial.attend(case, tensors, BLOCK_M, BLOCK_N, *window)
            if not tiles:
                again = partial(student, *tensors, *window, SCALE, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
                expect_new_results(case, run.value, again)
        states = tile_states(visible(tensors[0].shape[2], tensors[1].shape[2], causal, *window), BLOCK_M, BLOCK_N)
        tiles, visited = tiles + states.size, visited + int((states != SKIPPED).sum())
        yield case
    if causal:
        yield f"{visited} of {tiles} tiles visited: each tile that a query sees, once"
    else:
        yield "Q is read once, K and V once per row of tiles, and only O and the log-sum-exp are written"
    yield check_tensor_cores(run.launches[-1])


def _is_right(answer, expected, bound) -> bool:
    answer = torch.as_tensor(answer, dtype=torch.float64)
    error = torch.where(answer == expected, 0.0, (answer - expected).abs())
    return bool((error <= bound).all())


def _matrices(tensor: torch.Tensor) -> list[torch.Tensor]:
    """View the tensor as one matrix of rows or, if its strides do not allow that, as one matrix per head."""
    rows = tensor.flatten(0, -2)
    return [rows] if rows.data_ptr() == tensor.data_ptr() else [head for batch in tensor for head in batch]
