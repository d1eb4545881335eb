"""The experiments of the section on precision: sums, updates, gradients and products in 16 bits, and autocast's dtypes.

Each function returns a small table (pandas), computed on a CPU in a moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas
import torch
from torch import Tensor, nn

from labs_helpers.transformer.attentions import plain
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import next_token_loss, train

FLOAT16_LEAST, FLOAT16_NORMAL, FLOAT16_END = (
    -24,
    -14,
    16,
)  # exponents of the smallest number, the smallest normal one, and inf
LOW = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}


def sums(count: int = 10_000, seed: int = 0) -> pandas.DataFrame:
    """Add `count` numbers from 0 to 1 one by one in each dtype; return the sum, its error relative to float64's, and
    the error of `torch.sum`, which adds 16-bit numbers in float32 and rounds once."""
    numbers = torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    exact = numbers.sum().item()
    rows = {}
    for name, dtype in LOW.items():
        given = numbers.to(dtype)
        total = torch.zeros((), dtype=dtype)
        for number in given:
            total += number
        error, at_once = (value.item() / exact - 1 for value in (total, given.sum()))
        rows[name] = {"one by one": total.item(), "error": error, "torch.sum's error": at_once}
    return pandas.DataFrame.from_dict(rows, orient="index")


def lost_updates(steps: int = 100, change: float = -0.001) -> pandas.DataFrame:
    """Change a weight of 1 by `change` in every step, in each dtype and with a float32 master; return one row per
    step, from 0 on."""
    columns = {name: [torch.ones((), dtype=dtype)] for name, dtype in reversed(LOW.items())}
    for values in columns.values():
        for _ in range(steps):
            values.append(values[-1] + change)
    columns["bfloat16 of a float32 master"] = [value.bfloat16() for value in columns["float32"]]
    return pandas.DataFrame({name: [value.item() for value in values] for name, values in columns.items()})


def tiny_gradients(steps: int = 10, batch: int = 16, length: int = 128, seed: int = 0) -> dict[str, Tensor]:
    """Return gradients of the tiny transformer after some steps of training, in float32: of all 'parameters', and of
    'activations', the outputs of its matrices and the logits. Each is one (n,), on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(SIZES["tiny"])
    train(model, steps, batch=8, length=64, lr=3e-3, seed=seed)
    kept: list[Tensor] = []

    def keep_gradient(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        output.register_hook(kept.append)

    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(keep_gradient)
    x, y = next(batches("train", batch, length, seed + 1))
    model.zero_grad()
    logits = model(x)
    logits.register_hook(kept.append)
    next_token_loss(logits, y).backward()
    parameters = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return {
        "parameters": torch.cat([gradient.flatten() for gradient in parameters]),
        "activations": torch.cat([gradient.flatten() for gradient in kept]),
    }


def in_float16(
    gradients: dict[str, Tensor], scales: Sequence[float] = (1, 2**8, 2**12, 2**16, 2**20)
) -> pandas.DataFrame:
    """Return what happens to gradients, times a scale, in float16, as shares of the nonzero ones: flushed to 0;
    rounded to fewer than 11 bits, below 2⁻¹⁴; infinite. One row per name and scale."""
    rows = {}
    for name, gradient in gradients.items():
        wide = gradient[gradient != 0].abs()
        for scale in scales:
            low = (wide * scale).half()
            flushed, infinite = low == 0, low.isinf()
            few = (low < 2.0**FLOAT16_NORMAL) & ~flushed
            shares = {"flushed to 0": flushed, "fewer bits": few, "infinite": infinite}
            rows[name, scale] = {what: share.double().mean().item() for what, share in shares.items()}
    table = pandas.DataFrame.from_dict(rows, orient="index")
    return table.rename_axis(index=("gradients of", "scale"))


def exponents(gradient: Tensor) -> pandas.Series:
    """Return the share of the nonzero numbers by power of two: k → those from 2ᵏ to 2ᵏ⁺¹."""
    powers = torch.frexp(gradient[gradient != 0].double()).exponent - 1
    values, counts = powers.unique(return_counts=True)
    return pandas.Series((counts / counts.sum()).tolist(), index=values.tolist(), name="share").rename_axis("exponent")


def dtypes(length: int = 16) -> pandas.DataFrame:
    """Return the dtypes in a training step of the tiny transformer: one row per tensor, one column per way to train."""
    columns = {
        "float32": _dtypes(torch.float32, False, length),
        "autocast to bfloat16": _dtypes(torch.float32, True, length),
        "bfloat16": _dtypes(torch.bfloat16, False, length),
    }
    return pandas.DataFrame(columns).map(lambda dtype: str(dtype).removeprefix("torch."))


def _dtypes(dtype: torch.dtype, autocast: bool, length: int) -> dict[str, torch.dtype]:
    seen: dict[str, torch.dtype] = {}

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen["q, k, v"] = q.dtype
        return plain(q, k, v)

    model = Transformer(SIZES["tiny"], attention).to(dtype)
    block = model.blocks[0]
    named = {
        "embedding": model.embedding,
        "norm": block.attention_norm,
        "attention": block.attention,
        "MLP": block.mlp,
        "residual stream": block,
    }
    for name, module in named.items():
        module.register_forward_hook(lambda module, inputs, output, name=name: seen.update({name: output.dtype}))
    seen["parameters"] = model.embedding.weight.dtype
    x = torch.arange(length)[None]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        logits = model(x)
        loss = next_token_loss(logits, x)
    loss.backward()
    seen |= {"logits": logits.dtype, "loss": loss.dtype, "gradients": block.mlp.gate.weight.grad.dtype}
    return seen


def rounded(x: Tensor, bits: int = 10) -> Tensor:
    """Round float32 to the nearest number with `bits` stored bits of mantissa, ties to even; exponents stay. Finite
    numbers only. With 10 bits the result is TF32, the operands of float32 products on tensor cores."""
    drop = 23 - bits
    whole = x.contiguous().view(torch.int32)
    half = (1 << (drop - 1)) - 1 + ((whole >> drop) & 1)
    return ((whole + half) >> drop << drop).view(torch.float32)


def product_errors(size: int = 256, seed: int = 0) -> pandas.DataFrame:
    """Return the errors of a · b, size × size, with operands in each format and sums in float32: largest and mean
    error against float64, and mean difference from float32's product, relative to |a| · |b|. TF32 is emulated."""
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(size, size, generator=generator) for _ in range(2))
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    formats = {"float32": (a, b), "TF32": (rounded(a), rounded(b))}
    formats |= {str(dtype)[6:]: (a.to(dtype).float(), b.to(dtype).float()) for dtype in (torch.float16, torch.bfloat16)}
    rows = {}
    for name, (left, right) in formats.items():
        product = (left @ right).double()
        error, difference = ((product - other).abs() / magnitude for other in (exact, (a @ b).double()))
        rows[name] = {
            "largest error": error.max().item(),
            "mean error": error.mean().item(),
            "from float32": difference.mean().item(),
        }
    return pandas.DataFrame.from_dict(rows, orient="index")
