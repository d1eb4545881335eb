"""Check a backward pass in PyTorch against float64 and against finite differences."""

import torch

from labs_helpers.attention.lab04.checks.explaining import explaining
from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.attention.lab05.checks.causes import gradient_causes
from labs_helpers.course.verdict import Wrong, expect_close


def expect_float64(case: str, answer, exact: BackwardPass) -> None:
    """Raise Wrong unless `answer` is dQ, dK and dV to float64's precision."""
    for name, value in zip(NAMES, answer, strict=True):
        if value is None:
            none = "backward returns None in place of this gradient, or does not return it"
            raise Wrong(case, f"backward returns None for {NAMES[name]}", cause=none)
        expect_close(
            case,
            value,
            getattr(exact, name),
            1e-10,
            "float64",
            explaining(gradient_causes(exact, name), value, getattr(exact, name), torch.tensor(1e-10)),
            name=NAMES[name],
        )


def expect_gradcheck(case: str, function, inputs: list[torch.Tensor]) -> None:
    """Raise Wrong unless the gradients of `function(*inputs)` agree with finite differences."""
    try:
        torch.autograd.gradcheck(function, [x.requires_grad_() for x in inputs])
    except torch.autograd.gradcheck.GradcheckError as error:
        raise Wrong(case, str(error).splitlines()[0]) from error
