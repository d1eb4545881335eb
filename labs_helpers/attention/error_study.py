"""The error of attention against a float64 reference, by sequence length.

The reference is `torch_reference` in float64. It processes blocks of query rows, so that 16,384 tokens fit into memory.
"""

from __future__ import annotations

import torch

from labs_helpers.attention.baselines import FLASH, OURS, PLAIN, about, candidate, gradients, operands
from labs_helpers.measure.machine import this_machine

ROUNDED = "float64, rounded once"
QUANTITIES = ("o", "dq", "dk", "dv")
LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def reference(q, k, v, do, causal: bool, rows: int = 1024) -> list:
    """Return [o, dq, dk, dv] in float64, computed for `rows` query rows at a time; q and k have the same length."""
    from labs_helpers.attention import torch_reference

    q, k, v, do = (t.detach().double() for t in (q, k, v, do))
    o, dq, dk, dv = (torch.zeros_like(t) for t in (q, q, k, v))
    for start in range(0, q.shape[2], rows):
        block = slice(start, min(start + rows, q.shape[2]))
        # The diagonal starts from the bottom right corner, so these rows see only the keys up to their own.
        seen = slice(0, block.stop if causal else None)
        some, keys, values = q[:, :, block], k[:, :, seen], v[:, :, seen]
        out, lse = torch_reference.attention_forward(some, keys, values, causal)
        o[:, :, block] = out
        steps = torch_reference.attention_backward(some, keys, values, out, lse, do[:, :, block], causal)
        dq[:, :, block] = steps[0]
        dk[:, :, seen] += steps[1]
        dv[:, :, seen] += steps[2]
    return [o, dq, dk, dv]


def relative_error(got, exact) -> float:
    """Return ‖got − exact‖ / ‖exact‖ in float64; NaN if a value is not finite."""
    return float((got.double() - exact).norm() / exact.norm())


def measure_errors(
    lengths=LENGTHS,
    head_dim: int = 128,
    dtypes=("float16", "bfloat16"),
    causal: bool = False,
    names=(OURS, FLASH, PLAIN),
) -> list[dict]:
    """Return one record per length, dtype, candidate and quantity, for one head of random numbers.

    rms_error and max_error are absolute; reference_rms is the rms of the exact quantity. `ROUNDED` is the reference
    rounded to the dtype, and no result in that dtype is better. Raises ValueError for a result that is not finite.
    """
    device = this_machine().device
    records = []
    for dtype in dtypes:
        for length in lengths:
            q, k, v, do = operands(length, head_dim, getattr(torch, dtype), device, tokens=length, width=head_dim)
            exact = reference(q, k, v, do, causal)
            results = {ROUNDED: [t.to(q.dtype) for t in exact]}
            for name in names:
                o = candidate(name, length, causal)(q, k, v)
                results[name] = [o.detach(), *gradients(o, q, k, v, do)]
            for name, got in results.items():
                for quantity, result, right in zip(QUANTITIES, got, exact, strict=True):
                    error = result.double() - right
                    if not error.isfinite().all():
                        raise ValueError(f"{name}, {dtype}, length {length}: {quantity} is not finite")
                    records.append(
                        about("error", name, q, causal, of=quantity)
                        | {"rms_error": float(error.square().mean().sqrt()), "max_error": float(error.abs().max())}
                        | {"reference_rms": float(right.square().mean().sqrt())}
                    )
    return records
