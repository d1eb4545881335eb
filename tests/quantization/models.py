"""Small models of bytes, and text for them."""

import dataclasses

import torch

from labs_helpers.quantization.outliers import make_outliers
from labs_helpers.quantization.simulation import simulate
from labs_helpers.transformer import SIZES, Transformer
from labs_helpers.transformer.text import validation_sample

SMALL = dataclasses.replace(SIZES["tiny"], width=64, heads=4, hidden=96, context=64)


def small(seed=0, dtype=torch.float32, **changes):
    """A model of two layers whose norms are not all 1, as after training."""
    torch.manual_seed(seed)
    model = Transformer(dataclasses.replace(SMALL, **changes))
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.data.uniform_(0.5, 2)
        else:
            parameter.data.mul_(3)
    return model.to(dtype).eval()


def tokens(batch=4, length=32):
    return validation_sample(batch, length)[0]


def grouped_int4(w, group=32):
    """Round (N, K) to int4 in NumPy, with a scale and a zero point per group of columns, and return it in float32."""
    parts = w.detach().numpy().astype("float64").reshape(len(w), -1, group)
    low, high = parts.min(-1, keepdims=True).clip(max=0), parts.max(-1, keepdims=True).clip(min=0)
    scale = ((high - low) / 15).clip(min=1e-12)
    zero = (-low / scale).round()
    q = ((parts / scale).round() + zero).clip(0, 15)
    return torch.from_numpy(((q - zero) * scale).reshape(w.shape)).to(w.dtype)


def error_with_outliers(factor, prepare, *simulated):
    """Return the mean squared error of simulated products in a model with outliers, after `prepare(model, x)`.

    What prepare does must not change the model's results.
    """
    x = tokens()
    expected = small()(x)
    model = small()
    make_outliers(model, channels=2, factor=factor)
    prepare(model, x)
    assert torch.allclose(model(x), expected, atol=1e-3)
    simulate(model, *simulated)
    return (model(x) - expected).square().mean().item()
