"""What every kernel of lab 04 that writes O and log-sum-exp is held to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from labs_helpers.attention.lab04.checks.causes import Exact, slips
from labs_helpers.attention.tile_map import visits
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.kernel_trial import Run, run_watched
from labs_helpers.course.verdict.wrong import Wrong

WHY = "float32 sums, P and O rounded once"
OWN_ROWS = {
    "O": "each head has its own rows of O: (head * Lq + rows) * D, with rows from program_id(0) * BLOCK_M",
    "lse": "each head has its own rows of lse: head * Lq + rows, with rows from program_id(0) * BLOCK_M",
}
FORGOTTEN = "its bound forgets Lk − Lq"
PYTORCH = {
    "bmm",
    "mm",
    "baddbmm",
    "_softmax",
    "mul",
    "mul_",
    "div",
    "div_",
    "logsumexp",
    "log",
    "log2",
    "exp",
    "exp2",
    "tril",
    "triu",
    "where",
    "masked_fill",
    "masked_fill_",
    "amax",
    "max",
    "clone",
    "nan_to_num",
}


def attend(case: str, student, seen: np.ndarray, q, k, v, *rest, scale: float, own_slips=None, **blocks) -> Run:
    """`student(q, k, v, *rest, scale, **blocks)` against float64, with its loads, stores and visits; raises Wrong.

    seen: bool (Lq, Lk). own_slips: function of the Exact that gives this exercise's own `slips`, (of o, of lse).
    """
    with TorchTraffic() as outside:
        run = run_watched(case, student, q, k, v, *rest, scale, **blocks)
    if extra := [op.name for op in outside.operations if op.name in PYTORCH]:
        raise Wrong(case, f"PyTorch ran {', '.join(extra)} beside the kernel; all of it belongs into the kernel")
    if len(run.launches) > 1:
        raise Wrong(case, f"{len(run.launches)} kernels were launched; one is enough")
    o, lse = _outputs(run, q)
    for name, tensor in (("O", o), ("lse", lse)):
        replace(run, value=tensor.flatten(0, -2)).expect_written_once(name, OWN_ROWS[name])
    _expect_blind(run, torch.from_numpy(~seen.any(1)), o, lse)
    _expect_visits(run, student, seen, q, k, v, *rest, scale, **blocks)
    exact = Exact.of(q, k, v, scale, seen)
    bound_o, bound_lse = exact.bounds(q.dtype)
    common = partial(slips, exact, blocks["BLOCK_N"])
    own = own_slips or (lambda exact: ({}, {}))
    _close_rows(lse, exact.lse, bound_lse, f"{case}, log-sum-exp", lambda: own(exact)[1] | common()[1])
    _close_rows(o, exact.o, bound_o, f"{case}, O (heads one below another)", lambda: own(exact)[0] | common()[0])
    return run


def _outputs(run: Run, q):
    if not (isinstance(run.value, tuple) and len(run.value) == 2):
        raise Wrong(run.case, f"returned {type(run.value).__name__}, expected two tensors: (o, lse)")
    o, lse = run.value
    for name, tensor, shape, dtype in (("o", o, q.shape, q.dtype), ("lse", lse, q.shape[:3], torch.float32)):
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype:
            raise Wrong(run.case, f"{name} is {tuple(tensor.shape)} {tensor.dtype}, expected {tuple(shape)} {dtype}")
    return o, lse


def _expect_blind(run: Run, blind, o, lse) -> None:
    """Where a row sees no key, a large negative number in place of −inf shows as a finite log-sum-exp."""
    rows = blind[None, None].expand(lse.shape)
    finite = rows & lse.cpu().isfinite() & (lse.cpu() < -1000)
    if not bool(finite.any()):
        return
    # With −10⁹ in the mask each key counts alike, and O is the mean of V; with m_i alone l_i stays 0.
    where = "a score is masked with" if bool((o.cpu()[finite] != 0).any()) else "m_i starts at"
    raise Wrong(
        run.case,
        f"the log-sum-exp of a query that sees no key is {lse.cpu()[finite][0]:.3g}, expected -inf.\n"
        f'Likely cause: {where} a large negative number, not -float("inf"). Where nothing is seen s − m is 0 '
        "then, and exp(0) is 1",
    )


def _close_rows(actual, expected, bound, case: str, suspects) -> None:
    """`close` on a matrix; where −inf is expected, −inf is right. suspects: called when something is wrong."""
    shape = (-1, expected.shape[-1])
    actual = actual.cpu().double()
    same = torch.isinf(expected) & (actual == expected)
    actual, expected, bound = (t.masked_fill(same, 0.0).reshape(shape) for t in (actual, expected, bound))
    if bool(((actual - expected).abs() <= bound).all()):
        return
    wrong = {text: value.masked_fill(same, 0.0).reshape(shape) for text, value in suspects().items()}
    # Beside an infinity every finite number is near, so those have to be in the same places.
    close(
        actual,
        expected,
        bound,
        case,
        WHY,
        {text: value for text, value in wrong.items() if torch.equal(value.isinf(), actual.isinf())},
    )


def _expect_visits(run: Run, student, seen: np.ndarray, q, k, v, *rest, BLOCK_M: int, BLOCK_N: int) -> None:
    """Q is loaded once; each program loads the tiles of K, and of V, that one of its rows sees, and no other."""
    if run.meter is None:
        return
    run.expect_loads("Q", q, 1, "each program loads its own rows, once, before the loop")
    found = visits(student, q, k, v, *rest, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    Lq, Lk = seen.shape
    oblong = Lq != Lk and not seen.all()  # with a mask; a case of Lq = Lk has come before
    total = np.zeros(Lk, int)
    for i, loads in enumerate(found):
        rows = f"queries {i * BLOCK_M} to {min((i + 1) * BLOCK_M, Lq) - 1}"
        needed = seen[i * BLOCK_M : (i + 1) * BLOCK_M].any(0)
        if (missed := np.flatnonzero(needed & (loads == 0))).size:
            raise Wrong(
                run.case,
                f"program ({i}, 0), {rows}, never loads key {missed[0]}, which it sees: of "
                f"{needed.sum()} keys that its rows see it loads {(needed & (loads > 0)).sum()}.\n"
                f"Likely cause: {_why_missed(missed, needed, loads, oblong)}",
            )
        if (loads > 1).any():
            raise Wrong(
                run.case,
                f"program ({i}, 0) loads key {np.flatnonzero(loads > 1)[0]} {loads.max()} times; "
                "once is enough: K's tile stays on the chip while it is needed",
            )
        keys = np.flatnonzero(needed)
        # Whole tiles, counted from 0, or as many from where the program likes to start.
        allowed = 0 if not keys.size else min(Lk, (keys[-1] // BLOCK_N + 1) * BLOCK_N) - keys[0] // BLOCK_N * BLOCK_N
        if (loads > 0).sum() > allowed:
            tiles = [slice(j, min(j + BLOCK_N, Lk)) for j in range(0, Lk, BLOCK_N)]
            unseen = [tile for tile in tiles if loads[tile].any() and not needed[tile].any()]
            what = f"the tile of keys {unseen[0].start} to {unseen[0].stop - 1}" if unseen else "more"
            raise Wrong(
                run.case,
                f"program ({i}, 0), {rows}, loads {(loads > 0).sum()} keys, {allowed} are enough: "
                f"it visits {what}, of which no row sees anything.\nLikely cause: a tile that is masked whole "
                "is computed all the same; "
                + (f"where Lq = Lk it is not: {FORGOTTEN}" if oblong else "start the loop later or end it earlier"),
            )
        total += loads
    for name, tensor in (("K", k), ("V", v)):
        loads = run.counts(tensor).loads
        if not loads.any():
            raise Wrong(run.case, f"{name} was never loaded: the kernel did not get {name} itself")
        if (loads < total[:, None]).any() and (loads > total[:, None]).any():
            raise Wrong(
                run.case,
                f"{(loads < total[:, None]).sum():,} elements of {name} are loaded too rarely and "
                f"{(loads > total[:, None]).sum():,} too often.\nLikely cause: another batch or head is read, "
                f"as where another tensor's stride is taken; {name} has strides of its own",
            )
        if not (loads == total[:, None]).all():
            raise Wrong(
                run.case,
                f"{name} is loaded {loads.sum():,} times an element in all, expected "
                f"{total.sum() * loads.size // Lk:,}: each program loads the tiles of K and of V that it "
                "visits once.",
            )


def _why_missed(missed, needed, loads, oblong: bool) -> str:
    if not loads.any():
        return "the loop has no step, or what is loaded as K is not K"
    if loads.max() > 1:
        return "every step loads the same tile: `start` has to enter the pointers"
    where = "ends too early" if missed[-1] == np.flatnonzero(needed)[-1] else "starts too late"
    if oblong:
        return f"the loop {where}, and only where Lq ≠ Lk: {FORGOTTEN}"
    return f"the loop {where}; a tile that is seen in part is needed too"
