"""What proves exercise 1 of lab 05 right, the backward pass in PyTorch; and the other checks by name."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.causes import suspects
from labs_helpers.attention.lab05.checks.exact import Exact
from labs_helpers.attention.lab05.checks.trial import NAMES
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.wrong import Wrong


@exercise("05/1", "derivation", points=15, minutes=20, reference=exercises.attention_function)
def attention_function(student):
    for case, Lq, Lk, causal in (
        ("5 queries, 7 keys", 5, 7, False),
        ("6 queries, 6 keys", 6, 6, False),
        ("6 queries, 6 keys, causal", 6, 6, True),
        ("4 queries, 7 keys, causal", 4, 7, True),
    ):
        q, do = numbers(1, 2, Lq, 3).double(), numbers(1, 2, Lq, 3, seed=3).double()
        k, v = numbers(1, 2, Lk, 3, seed=1).double(), numbers(1, 2, Lk, 3, seed=2).double()
        operands = [x.requires_grad_() for x in (q, k, v)]
        exact = Exact(q, k, v, do, 3**-0.5, causal)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, saved=saved: (saved.append(x), x)[1], lambda x: x):
            o = student(q, k, v, causal)
        close(o, exact.o, 1e-12, f"{case}: o", "float64")
        if o.grad_fn is None or "AttentionFunction" not in type(o.grad_fn).__name__:
            raise Wrong(case, "o does not come from AttentionFunction.apply, so its backward is never called")
        kept = [value for value in vars(o.grad_fn).values() if isinstance(value, torch.Tensor)]
        for name, value in zip(NAMES, torch.autograd.grad(o, operands, do, allow_unused=True), strict=True):
            if value is None:
                raise Wrong(case, f"the backward returns None for {NAMES[name]}")
            close(value, getattr(exact, name), 1e-10, f"{case}: {NAMES[name]}", "float64", suspects(exact, name))
        _expect_little(case, [*saved, *kept], Lq, Lk, sum(x.numel() for x in (q, k, v, o)) + Lq * 2)
        yield case
    yield f"kept for the backward: {', '.join('×'.join(map(str, x.shape)) for x in saved)}; nothing is 4×7"
    for causal in (False, True):
        small = [numbers(1, 1, n, 2, seed=n).double().requires_grad_() for n in (3, 4, 4)]
        try:
            torch.autograd.gradcheck(lambda q, k, v, causal=causal: student(q, k, v, causal), small)
        except torch.autograd.gradcheck.GradcheckError as error:
            raise Wrong(f"gradcheck, causal={causal}", str(error).splitlines()[0]) from error
    yield "gradcheck in float64: the gradients are those of finite differences"


def _expect_little(case: str, kept: list, Lq: int, Lk: int, most: int) -> None:
    for x in kept:
        if {Lq, Lk} <= set(x.shape[-2:]) and x.shape[-2] * x.shape[-1] >= Lq * Lk:
            raise Wrong(
                case,
                f"a tensor of {'×'.join(map(str, x.shape))} is kept for the backward: Lq × Lk for each "
                "head.\nLikely cause: P or the scores are saved. lse is enough to compute P again.",
            )
    if (elements := sum(x.numel() for x in kept)) > most:
        raise Wrong(case, f"{elements} numbers are kept for the backward; q, k, v, o and lse are {most}")
