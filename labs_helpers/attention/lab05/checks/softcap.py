"""What proves exercise 5 of lab 05 right, the transfer: the gradients of attention with soft-capped scores."""

from __future__ import annotations

from dataclasses import replace

import torch

from labs_helpers.attention.lab05.checks.causes import suspects
from labs_helpers.attention.lab05.checks.exact import Exact
from labs_helpers.attention.lab05.checks.trial import NAMES, Case, expect_gradient
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.kernel_trial import check_tensor_cores, run_watched
from labs_helpers.course.verdict.wrong import Wrong

CASES = (
    Case("128 queries, 128 keys, cap 2", 128, 128, cap=2.0),
    Case("50 queries, 40 keys, cap 2", 50, 40, cap=2.0),
    Case("100 queries, 70 keys, scores near −200, cap 150", 100, 70, near=-200.0, cap=150.0),
    Case("70 queries, 130 keys, float16, cap 1", 70, 130, dtype=torch.float16, cap=1.0),
)


@exercise("05/5", "transfer: soft-capped scores", points=30, minutes=25, kernel=True)
def softcap_gradients(student):
    scale, cap = 0.7, 1.5
    q, do = numbers(1, 2, 5, 3).double(), numbers(1, 2, 5, 3, seed=3).double()
    k, v = numbers(1, 2, 7, 3, seed=1).double(), numbers(1, 2, 7, 3, seed=2).double()
    exact, case = Exact(q, k, v, do, scale, cap=cap), "PyTorch, float64"
    given = dict(q=q, k=k, v=v, do=do, scale=scale, cap=cap)
    answer = student(o=exact.o.to(q.device), lse=exact.lse.to(q.device), **given)
    _expect_three(case, answer)
    for name, value in zip(NAMES, answer, strict=True):
        close(value, getattr(exact, name), 1e-10, f"{case}: {NAMES[name]}", "float64", suspects(exact, name))
    yield case
    yield _gradcheck(student, q, k, v, scale, cap)
    for case in CASES:
        given, exact = case.operands()
        lse, _ = given.pop("lse"), given.pop("delta")
        o, exact = exact.o.to(lse.device, case.dtype), replace(exact, o_dtype=case.dtype)
        run = run_watched(case.name, student, **given, o=o, lse=lse, cap=case.cap)
        _expect_three(case.name, run.value)
        if len(run.launches) > 1:
            raise Wrong(case.name, f"{len(run.launches)} kernels were launched; dQ takes one")
        expect_gradient(run, "dq", run.value[0], exact, case.dtype)
        yield f"kernel: {case.name}"
    yield check_tensor_cores("compiled", run.launches[-1])


def _expect_three(case: str, answer) -> None:
    if not (isinstance(answer, tuple) and len(answer) == 3 and all(isinstance(x, torch.Tensor) for x in answer)):
        raise Wrong(case, f"returned {type(answer).__name__}; (dQ, dK, dV) is asked for")


def _gradcheck(student, q, k, v, scale: float, cap: float) -> str:
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

    try:
        torch.autograd.gradcheck(Softcapped.apply, [x.requires_grad_() for x in (q, k, v)])
    except torch.autograd.gradcheck.GradcheckError as error:
        raise Wrong("gradcheck", str(error).splitlines()[0]) from error
    return "gradcheck in float64: the gradients are those of finite differences"
