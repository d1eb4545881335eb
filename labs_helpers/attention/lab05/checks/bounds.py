"""Bounds on the errors in dQ, dK and dV that a kernel's arithmetic may cause."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass

U = 2.0**-24  # half the spacing of float32's numbers near 1
WHY = "float32 products and sums, P and dS rounded once for the tensor cores"


def gradient_bounds(e: BackwardPass, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Return 'dq', 'dk', 'dv' → an error bound for each element, for float32 tiles and operands of `dtype`.

    The bound follows roundings through P = exp(s − lse) and dS = P ∘ (dP − delta). The error of a sum of n products
    is at most n·2⁻²⁴ of Σ|a||b| (Higham, Accuracy and Stability of Numerical Algorithms, §3.1). P, dS and the
    results are each rounded to `dtype`.
    """
    D, info = e.q.shape[3], torch.finfo(dtype)
    unit, tiny = info.eps / 2, info.smallest_normal * info.eps
    centred = (e.dp - e.delta).abs()
    lse = e.lse.masked_fill(e.lse.isinf(), 0.0)
    in_exponent = (D + 8) * U * e.scale * e.q.abs() @ e.k.abs().mT + 8 * U * (e.s.abs() + lse.abs() + 1)
    in_slope = 0.0 if e.cap is None else 4 * in_exponent + 16 * U  # |tanh'| and |tanh''| are at most 1
    in_p = e.p * in_exponent.expm1()
    in_delta = (D + 4) * U * (e.o * e.do).abs().sum(-1, keepdim=True)
    in_dp = (D + 4) * U * e.do.abs() @ e.v.abs().mT + in_delta
    in_ds = in_p * centred + e.p * in_dp + e.p * centred * (in_slope + 4 * U)
    in_p, in_ds = in_p + unit * e.p.abs() + tiny, in_ds + unit * e.ds.abs() + tiny

    def product(scale, left, in_left, right, result):
        in_sum = (left.shape[-1] + 4) * U * left.abs() @ right.abs()
        return scale * (in_left @ right.abs() + in_sum) + unit * result.abs() + tiny

    return {
        "dq": product(e.scale, e.ds, in_ds, e.k, e.dq),
        "dk": product(e.scale, e.ds.mT, in_ds.mT, e.q, e.dk),
        "dv": product(1.0, e.p.mT, in_p.mT, e.do, e.dv),
    }
