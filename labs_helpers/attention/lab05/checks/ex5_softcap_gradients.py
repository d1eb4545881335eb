"""The transfer exercise of lab 05: gradients of soft-capped attention, in PyTorch and with a kernel for dQ."""

from collections.abc import Sequence

import torch

from labs_helpers.attention.lab04.checks.pytorch_errors import explained
from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.attention.lab05.checks.cases import Case, random_operands
from labs_helpers.attention.lab05.checks.float64 import expect_float64, expect_gradcheck
from labs_helpers.attention.lab05.checks.gradients import (
    LETTERS,
    expect_at_most,
    expect_gradient,
    expect_nothing_stored,
    expect_tensors,
    in_tiles,
)
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Run, Wrong, check_tensor_cores, run_watched

CASES = (
    Case("128 queries, 128 keys, cap 2", 128, 128, cap=2.0),
    Case("50 queries, 40 keys, cap 2, heads of 32", 50, 40, cap=2.0, D=32),
    Case("128 queries, 64 keys, cap 2, some scores above 100 or below −100", 128, 64, cap=2.0, steep=60.0),
    Case("100 queries, 127 keys, scores near −200, cap 150", 100, 127, near=-200.0, cap=150.0),
    Case("70 queries, 130 keys, float16, cap 1, dP near 2000", 70, 130, dtype=torch.float16, cap=1.0, dp=2000.0),
    Case("60 queries, 60 keys, cap 2, BLOCK_M=16, BLOCK_N=32", 60, 60, cap=2.0, blocks=dict(BLOCK_M=16, BLOCK_N=32)),
)


@exercise("05/5", "transfer: soft-capped scores", points=30, minutes=25, kernel=True)
def softcap_gradients(student):
    case, scale, cap = "PyTorch, float64", 0.7, 1.5
    q, k, v, do = (x.double() for x in random_operands(5, 7, D=3))
    exact = BackwardPass(q, k, v, do, scale, cap=cap)
    o, lse = exact.o.to(q.device), exact.lse.squeeze(-1).to(q.device)
    given = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do}
    before = {name: x.clone() for name, x in given.items()}
    with explained(student, case):
        answer = student(**given, scale=scale, cap=cap)
    for name, x in given.items():
        if not torch.equal(x, before[name]):
            raise Wrong(
                case,
                f"{name} was changed in place.",
                cause="an operation such as +=, *= or a function whose name ends in _",
            )
    expect_float64(case, expect_tensors(case, answer, NAMES, exact), exact)
    yield case
    expect_gradcheck("gradcheck", softcapped(student, scale, cap), [q, k, v])
    yield "gradcheck in float64: the gradients agree with finite differences"
    passed: list = []
    for case in CASES:
        given, exact = case.operands()
        del given["delta"]
        o = exact.o.to(given["q"].device, case.dtype)
        run = run_watched(case.name, student, **given, o=o, cap=case.cap, **case.blocks)
        dq, _, _ = expect_tensors(case.name, run.value, NAMES, exact)
        if len(run.launches) > 1:
            raise Wrong(case.name, f"{len(run.launches)} kernels were launched; dQ needs only one")
        exact = in_tiles(run, exact)
        expect_gradient(run, "dq", dq, exact, case.dtype, passed)
        expect_nothing_stored(run, [*given.values(), dq])
        expect_own_work(run, [*given.values(), o], dq)
        for name in ("q", "do", "lse"):
            why = f"each tile of {LETTERS[name]} belongs to one program, which keeps it"
            run.expect_loads(LETTERS[name], given[name], 1, why)
        for name in ("k", "v"):
            expect_at_most(run, LETTERS[name], given[name], exact.walked(exact.corner)[:: exact.BLOCK_M].sum(0), "")
        yield f"kernel: {case.name}"
    yield check_tensor_cores(run.launches[-1])


def expect_own_work(run: Run, given: Sequence, dq: torch.Tensor) -> None:
    """Raise Wrong if the kernel loads more than a few numbers per query that PyTorch has computed."""
    if run.meter is None:
        return
    known = {x.untyped_storage().data_ptr() for x in given if isinstance(x, torch.Tensor)}
    made = {x.untyped_storage().data_ptr(): x for launch in run.launches for x in launch.tensors().values()}
    made = {name: x for name, x in made.items() if name not in known and run.meter.of(x).loads.any()}
    if sum(x.numel() for x in made.values()) > 4 * dq[..., 0].numel():
        shapes = " and ".join("×".join(map(str, x.shape)) for x in made.values())
        raise Wrong(
            run.case,
            f"the kernel loads tensors of {shapes} in addition to Q, K, V, O, lse and dO.",
            cause="PyTorch computes a part of dQ; only delta may be computed outside the kernel",
        )


def softcapped(student, scale: float, cap: float):
    """Return soft-capped attention as a function of q, k and v with the student's backward pass."""

    class Softcapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            s = cap * torch.tanh(scale * q @ k.mT / cap)
            lse = s.logsumexp(-1)
            o = torch.exp(s - lse[..., None]) @ v
            ctx.save_for_backward(q, k, v, o, lse)
            return o

        @staticmethod
        def backward(ctx, do):
            return student(*ctx.saved_tensors, do, scale, cap)

    return Softcapped.apply
