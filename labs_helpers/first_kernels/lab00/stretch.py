"""The stretch of lab 00: compute y = RMS norm of x + r in one kernel, and count the bytes that each version moves."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from labs_helpers.compile.interpreter_process import interpreted
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import describe_error
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars

M, N, EPS = 16, 1024, 1e-6


@triton.jit
def add_norm_kernel(x_ptr, r_ptr, y_ptr, N, stride_m, eps, BLOCK: tl.constexpr):
    """Program i normalizes row i of X + R. The whole row is one block and stays in registers, so it is read once."""
    columns = tl.program_id(0) * stride_m + tl.arange(0, BLOCK)
    exist = tl.arange(0, BLOCK) < N
    x = tl.load(x_ptr + columns, mask=exist, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + columns, mask=exist, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x) / N + eps)
    tl.store(y_ptr + columns, (x / rms).to(y_ptr.dtype.element_ty), mask=exist)


def add_norm(x, r, eps=EPS):
    """Return the RMS norm of x + r, (M, N) in x's dtype. x, r: (M, N), contiguous."""
    M, N = x.shape
    y = torch.empty_like(x)
    add_norm_kernel[(M,)](x, r, y, N, x.stride(0), eps, BLOCK=triton.next_power_of_2(N))
    return y


def in_pytorch(x, r, eps=EPS):
    """Compute the same in PyTorch, one operation after another."""
    x = x + r
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + eps)


def bytes_moved(function, x, r) -> tuple[int, float]:
    """Run `function(x, r)` in the interpreter. Return the bytes that its kernels load and store, and its largest error;
    0 and NaN if it returns no result."""
    with metered() as meter:
        y = function(x, r)
    if not torch.is_tensor(y) or y.shape != x.shape:
        return 0, float("nan")
    return meter.bytes_moved, float((y.double() - in_pytorch(x.double(), r.double())).abs().max())


def draw_stretch(student):
    """Draw the bytes per element that each version moves, including the student's if it returns a result."""
    generator = torch.Generator().manual_seed(0)
    x, r = torch.randn(M, N, generator=generator), torch.randn(M, N, generator=generator)
    with TorchTraffic() as traffic:
        in_pytorch(x, r)
    moved = {
        "PyTorch, one operation\nafter another": traffic.bytes,
        "an addition, then\nexercise 5's kernel": (3 + 3) * x.numel() * x.element_size(),
        "ours, one kernel": interpreted(bytes_moved, add_norm, x, r)[0],
    }
    try:
        own, error = interpreted(bytes_moved, student, x, r)
    except Exception as wrong:
        raise describe_error(student, wrong) from None
    if own:
        moved["yours" if error <= 1e-5 else f"yours, off by {error:.2g}"] = own
    elements = {name: nbytes / x.numel() for name, nbytes in moved.items()}
    share = elements["ours, one kernel"] / elements["PyTorch, one operation\nafter another"]
    fig, ax = figures.new(f"One kernel moves {share:.0%} of the bytes of PyTorch's operations", height=3.4)
    roles = {name: "yours" if name.startswith("yours") else "ours" for name in elements}
    texts = {name: f"{count:.1f}" for name, count in elements.items()}
    draw_bars(ax, elements, roles, texts, xlabel="bytes per element, float32", room=1.12)
    return fig
