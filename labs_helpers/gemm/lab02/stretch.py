"""The ungraded stretch of lab 02: compute D = (A·B) · SiLU(A·G) in one kernel, and compare it with other ways."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from labs_helpers.course.meter import metered
from labs_helpers.course.stub import attempted
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import matmul_bound
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.gemm.lab02.exercises import masked_matmul
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.timing import measure_rounds


@triton.jit
def gated_matmul_kernel(a_ptr, b_ptr, g_ptr, d_ptr, M, N, K,
                        stride_am, stride_ak, stride_bk, stride_bn, stride_gk, stride_gn, stride_dm, stride_dn,
                        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """Program (i, j) computes tile (i, j) of D = (A·B) · SiLU(A·G), and loads each tile of A once for both products."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    up, gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32), tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_inside = (rows[:, None] < M) & (k[None, :] < K)
        b_inside = (k[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak, a_inside, 0.0)
        b = tl.load(b_ptr + k[:, None] * stride_bk + columns[None, :] * stride_bn, b_inside, 0.0)
        g = tl.load(g_ptr + k[:, None] * stride_gk + columns[None, :] * stride_gn, b_inside, 0.0)
        up = tl.dot(a, b, up, input_precision="ieee")
        gate = tl.dot(a, g, gate, input_precision="ieee")
    d = up * gate * tl.sigmoid(gate)
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, d.to(d_ptr.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


def gated_matmul(a, b, g, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, **options):
    """Return (A·B) · SiLU(A·G), (M, N), from one kernel. a: (M, K), b and g: (K, N), any strides."""
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    gated_matmul_kernel[grid](a, b, g, d, M, N, K, *a.stride(), *b.stride(), *g.stride(), *d.stride(),
                              BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, **options)  # fmt: skip
    return d


def in_pytorch(a, b, g):
    """Compute the same with four of PyTorch's kernels."""
    return torch.nn.functional.silu(a @ g) * (a @ b)


def in_pieces(a, b, g):
    """Compute the same with exercise 4's kernel for each product, whose loads the meter can count."""
    return torch.nn.functional.silu(masked_matmul(a, g)) * masked_matmul(a, b)


def beside_ours(yours, n: int = 256, n_on_gpu: int = 4096):
    """Draw `yours(a, b, g)` beside our kernel and an unfused one.

    On a GPU the bars are TFLOP/s for float16 matrices of n_on_gpu × n_on_gpu. Elsewhere they are the MB that kernels
    load and store for n×n float32 matrices. If `yours` is a stub or wrong, the figure omits it and a line says why.
    """
    on_gpu = this_machine().device == "cuda"
    size, dtype = (n_on_gpu, torch.float16) if on_gpu else (n, torch.float32)
    a, b, g = (torch.randn(size, size, device=this_machine().device).to(dtype) / size**0.25 for _ in range(3))
    ways = {"PyTorch, 4 kernels": in_pytorch} if on_gpu else {"exercise 4 twice, then PyTorch": in_pieces}
    ways["ours"] = gated_matmul
    if not attempted(yours):
        print("○ your kernel is not written yet")
    elif said := _wrong(yours):
        print(f"✗ the figure omits your kernel: {said}")
    else:
        ways["yours"] = yours
    if on_gpu:
        timings = measure_rounds({name: lambda way=way: way(a, b, g) for name, way in ways.items()}, rounds=3)
        values = {name: 4 * size**3 / timing.median_ms / 1e9 for name, timing in timings.items()}
        best, unit = max(values, key=values.get), "TFLOP/s"
        title = f"n = {size}: {best} runs fastest"
    else:
        values = {name: _bytes(way, a, b, g) / 1e6 for name, way in ways.items()}
        best, unit = min(values, key=values.get), "MB loaded and stored"
        title = f"n = {size}: {best} moves the fewest bytes"
    fig, ax = figures.new(title, height=1.2 + 0.5 * len(values))
    texts = {name: f"{value:.3g}" for name, value in values.items()}
    roles = dict.fromkeys(values, "reference") | {"ours": "ours", "yours": "result"}
    draw_bars(ax, values, roles, texts, xlabel=unit, room=1.15)
    return fig


def _bytes(way, a, b, g) -> int:
    """Count the bytes that kernels and PyTorch's operations on their results load and store."""
    with metered() as meter, TorchTraffic() as outside:
        way(a, b, g)
    return meter.bytes_moved + sum(each.bytes for each in outside.operations if each.name in ("silu", "mul"))


def _wrong(yours) -> str:
    """Describe what is wrong with `yours` at a shape with odd sizes; '' if nothing is."""
    M, N, K = 100, 70, 50
    a, b, g = (torch.randn(size, device=this_machine().device) for size in ((M, K), (K, N), (K, N)))
    try:
        found = yours(a, b, g)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    up, gate = (a.cpu().double() @ x.cpu().double() for x in (b, g))
    expected = up * torch.nn.functional.silu(gate)
    bound = 8 * matmul_bound(expected, (a.cpu().abs() @ b.cpu().abs()) * (1 + gate.abs()), K, torch.float32)
    if tuple(found.shape) != (M, N):
        return f"its result has the shape {tuple(found.shape)}, not {(M, N)}"
    off = ~((found.cpu().double() - expected).abs() <= bound + 1e-4)
    return f"{int(off.sum())} of {off.numel()} elements are wrong at {M}×{N}×{K}" if off.any() else ""
