"""Exercise 1 of lab 05: compare the backward pass in PyTorch with float64, and check which tensors it keeps."""

import gc
import re

import torch

from labs_helpers.attention.lab04.checks.pytorch_errors import explained
from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass
from labs_helpers.attention.lab05.checks.cases import random_operands
from labs_helpers.attention.lab05.checks.float64 import expect_float64, expect_gradcheck
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_close, numbers
from labs_helpers.course.verdict.left_alone import expect_new_results


@exercise("05/1", "derivation", points=15, minutes=20, reference=exercises.attention_function)
def attention_function(student):
    for case, Lq, Lk, causal in (
        ("5 queries, 7 keys", 5, 7, False),
        ("6 queries, 6 keys", 6, 6, False),
        ("6 queries, 6 keys, causal", 6, 6, True),
        ("4 queries, 7 keys, causal", 4, 7, True),
    ):
        q, k, v, do = (x.double() for x in random_operands(Lq, Lk, D=3))
        operands = [x.requires_grad_() for x in (q, k, v)]
        before = [x.detach().clone() for x in (q, k, v, do)]
        exact = BackwardPass(*before, 3**-0.5, causal)
        saved, there = [], alive()
        with torch.autograd.graph.saved_tensors_hooks(lambda x, saved=saved: (saved.append(x), x)[1], lambda x: x):
            with explained(student, case):
                o = student(q, k, v, causal)
        known = set(map(id, (o, *saved, *there)))  # comparing all pairs is slow with thousands of tensors
        kept = saved + [x for x in alive() if id(x) not in known]
        expect_close(case, o, exact.o, 1e-12, "float64", name="o")
        if not has_own_backward(o.grad_fn):
            raise Wrong(case, "o does not come from AttentionFunction.apply, so its backward is never called")
        expect_no_circle(case, o)
        with explained(student, case):
            answer = torch.autograd.grad(o, operands, do, allow_unused=True)
        for name, x, copy in zip(("q", "k", "v", "do"), (q, k, v, do), before, strict=True):
            if not torch.equal(x, copy):
                raise Wrong(
                    case,
                    f"{name} was changed in place.",
                    cause="an operation such as +=, *= or a function whose name ends in _",
                )
        expect_float64(case, answer, exact)
        expect_new_results(case, o, lambda q=q, k=k, v=v, causal=causal: student(q, k, v, causal))
        expect_little(case, kept, Lq, Lk, sum(x.numel() for x in (q, k, v, o)) + Lq * 2)
        yield case
    yield f"kept for the backward pass: {', '.join('×'.join(map(str, x.shape)) for x in saved)}; nothing is 4×7"
    for causal in (False, True):
        small = [numbers(1, 1, n, 2, seed=n).double() for n in (3, 4, 4)]
        expect_gradcheck(f"gradcheck, causal={causal}", lambda q, k, v, causal=causal: student(q, k, v, causal), small)
    yield "gradcheck in float64: the gradients agree with finite differences"


def has_own_backward(node) -> bool:
    """Return whether this node's graph contains a custom Function; PyTorch's own node names end with a number."""
    if node is None:
        return False
    own = not re.search(r"Backward\d|AccumulateGrad", type(node).__name__)
    return own or any(has_own_backward(before) for before, _ in node.next_functions)


def alive() -> list[torch.Tensor]:
    """Return the floating-point tensors that are still referenced, also from a list or a closure."""
    found = (x for x in gc.get_objects() if issubclass(type(x), torch.Tensor))
    return [x for x in found if x.is_floating_point()]


def expect_no_circle(case: str, o: torch.Tensor) -> None:
    """Raise Wrong if ctx refers to o, which creates a reference cycle."""
    for name, value in vars(o.grad_fn).items():
        if any(x is o for x in (value if isinstance(value, (tuple, list)) else (value,))):
            raise Wrong(
                case,
                f"ctx.{name} refers to o, and o refers to ctx: this cycle keeps both and all saved tensors in memory.",
                cause="ctx.save_for_backward(…) keeps inputs and outputs without a cycle; an attribute does not.",
            )


def expect_little(case: str, kept: list[torch.Tensor], Lq: int, Lk: int, most: int) -> None:
    """Raise Wrong if an Lq × Lk tensor, or more than `most` numbers, are kept for the backward pass."""
    for x in kept:
        if {Lq, Lk} <= set(x.shape[-2:]) and x.shape[-2] * x.shape[-1] >= Lq * Lk:
            raise Wrong(
                case,
                f"a tensor of {'×'.join(map(str, x.shape))} is kept for the backward pass: Lq × Lk per head.",
                cause="P or the scores are saved; lse is enough to recompute P.",
            )
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() // x.itemsize for x in kept}
    if (elements := sum(storages.values())) > most:
        raise Wrong(case, f"{elements} numbers are kept for the backward pass; q, k, v, o and lse have {most}")
