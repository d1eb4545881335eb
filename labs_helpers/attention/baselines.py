"""The implementations of attention that the study times, and a command that compiles them beforehand.

python -m labs_helpers.attention.baselines 4096 --head-dim 64 --causal    # run each once to compile it
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from labs_helpers.launch import program
from labs_helpers.launch.process import ProcessFailed, run
from labs_helpers.measure import results

OURS, PORTABLE = "flash_attention", "flash_attention, portable kernels"
FLASH, CUDNN, EFFICIENT = "FlashAttention-2 (SDPA)", "cuDNN (SDPA)", "memory-efficient (SDPA)"
FLEX, PLAIN = "flex_attention", "plain"
NAMES = {"float16": (OURS, PORTABLE, FLASH, CUDNN, FLEX), "bfloat16": (OURS, FLASH, CUDNN)}
BACKENDS = {
    FLASH: SDPBackend.FLASH_ATTENTION,
    CUDNN: SDPBackend.CUDNN_ATTENTION,
    EFFICIENT: SDPBackend.EFFICIENT_ATTENTION,
}
COMPILED = (OURS, PORTABLE, FLEX)  # compiled at the first call; the others are precompiled
TOKENS, WIDTH = 16384, 2048  # of a batch, and of the model: heads × head dim


class PortableAttention(torch.autograd.Function):
    """`flash_attention` with the portable kernels, regardless of the plan."""

    @staticmethod
    def forward(ctx, q, k, v, causal):
        from labs_helpers.attention.kernels import portable

        ctx.causal, ctx.scale = causal, q.shape[-1] ** -0.5
        o, lse = portable.forward(q, k, v, causal, ctx.scale)
        ctx.save_for_backward(q, k, v, o, lse)
        return o

    @staticmethod
    def backward(ctx, do):
        from labs_helpers.attention.kernels import portable

        return *portable.backward(*ctx.saved_tensors, do, ctx.causal, ctx.scale), None


def plain_attention(q, k, v, causal: bool = False, scale: float | None = None):
    """Compute attention by its formula, in the inputs' dtype; each matrix of L × L scores is a tensor in memory.

    scale: of the scores, by default 1/√D. It multiplies Q, which has only L × D numbers. Three kernels then read or
    write the scores, as in exercise 1 of lab 04: a product, a softmax and a product.
    """
    if scale != 1:
        q = q * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = q @ k.mT
    if causal:
        rows, columns = scores.shape[-2:]
        seen = torch.ones(rows, columns, dtype=torch.bool, device=q.device).tril(columns - rows)
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(-1) @ v


def candidate(name: str, length: int, causal: bool):
    """Return the function (q, k, v) → o with this name, for self-attention over `length` tokens.

    The function may raise its library's errors if it cannot run.
    """
    if name == FLEX:
        return _flex(length, causal)
    if name == PORTABLE:
        return lambda q, k, v: PortableAttention.apply(q, k, v, causal)
    if name == PLAIN:
        return lambda q, k, v: plain_attention(q, k, v, causal)
    if name == OURS:
        from labs_helpers.attention.flash import flash_attention

        return lambda q, k, v: flash_attention(q, k, v, causal=causal)
    backend = BACKENDS[name]

    def attend(q, k, v):
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return attend


def _flex(length: int, causal: bool):
    import torch._functorch.config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    # A compiled backward pass may overwrite the saved tensors; it could then run, and be timed, only once.
    torch._functorch.config.donated_buffer = False
    compiled = torch.compile(flex_attention, dynamic=False)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cuda") if causal else None
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


def operands(length: int, head_dim: int, dtype, device: str, tokens: int = TOKENS, width: int = WIDTH) -> list:
    """Return random q, k, v (with requires_grad) and do, (tokens // length, width // head_dim, length, head_dim)."""
    shape = (max(tokens // length, 1), max(width // head_dim, 1), length, head_dim)
    generator = torch.Generator(device).manual_seed(length + head_dim)
    q, k, v, do = (torch.randn(shape, generator=generator, device=device).to(dtype) for _ in range(4))
    return [*(t.requires_grad_() for t in (q, k, v)), do]


def about(kind: str, name: str, q, causal: bool, **more) -> dict:
    """Return the columns that every record of attention on these operands has. more: added or replaced columns."""
    B, H, L, D = q.shape
    told = {"study": "attention", "kind": kind, "name": name, "dtype": str(q.dtype).removeprefix("torch.")}
    return told | {"B": B, "H": H, "L": L, "D": D, "causal": causal} | more


def gradients(o, q, k, v, do) -> tuple:
    """Return (dq, dk, dv) of a call that returned o; the graph is kept, so you can call it again."""
    return torch.autograd.grad(o, (q, k, v), do, retain_graph=True)


def compile_beforehand(shapes, dtypes, pool: ThreadPoolExecutor, timeout: float = 120) -> list[Future]:
    """Start one process per (length, head dim, causal) that compiles the candidates, to use all cores.

    The measuring process then finds the kernels on disk. A failed compilation is printed.
    """

    def start(shape):
        length, head_dim, causal = shape
        command = [
            sys.executable,
            "-m",
            "labs_helpers.attention.baselines",
            str(length),
            "--head-dim",
            str(head_dim),
            *(["--causal"] if causal else []),
            "--dtypes",
            *dtypes,
        ]
        try:
            run(command, timeout=timeout, cwd=results.ROOT, env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"})
        except ProcessFailed as error:
            print(f"compiling beforehand: {str(error).splitlines()[-1]}")

    return [pool.submit(start, shape) for shape in shapes]


def main(arguments=None) -> None:
    from labs_helpers.measure.machine import this_machine

    parser = program.Parser(description="Compile candidates by running them once, forward and backward")
    parser.add_argument("length", type=int)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtypes", nargs="+", default=["float16"], choices=NAMES)
    given = parser.parse_args(arguments)
    for dtype in given.dtypes:
        q, k, v, do = operands(given.length, given.head_dim, getattr(torch, dtype), this_machine().device)
        for name in [name for name in NAMES[dtype] if name in COMPILED]:
            try:
                gradients(candidate(name, given.length, given.causal)(q, k, v), q, k, v, do)
            except Exception as error:  # the study hits the same error and reports it
                print(f"{name}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    program.run(main)
