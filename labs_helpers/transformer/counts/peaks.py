"""Predict the most bytes alive in a training step, and at which point."""

from __future__ import annotations

from dataclasses import replace

from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts.activations import saved_activations
from labs_helpers.transformer.counts.known import expect_known
from labs_helpers.transformer.counts.states import parameters


def step_peaks(
    config: TransformerConfig,
    batch: int,
    length: int,
    itemsize: int = 4,
    attention: str = "plain",
    optimizer: str = "foreach",
) -> dict[str, int]:
    """Return the bytes of tensors alive at five points of a training step; the largest is the step's peak.

    They are the points at which measured steps reached their peak, operator by operator:

        'loss': the backward pass is in the loss's softmax. Memory holds all kept activations and the gradients of the
            log-softmax and of the logits, in float32. Most steps have their peak here.
        'mlp': in the last layer's silu · up, with three gradients F wide. The peak if F is well above V.
        'attention': in a layer's softmax, with the gradients of the probabilities and of the scores in float32: in the
            last layer, or in the first if gradients exceed activations. The peak if H · L is well above V.
        'gradients': the backward pass ends. A tied weight has two gradients, of output and embedding, and their sum.
        'update': AdamW's temporaries. 'foreach', the default on GPUs, allocates one as large as all parameters,
            'for-loop' two or three as large as the largest matrix, 'fused' none. The peak if there are few tokens.

    The step: forward, backward, update, and gradients freed before the next forward (`zero_grad(set_to_none=True)`).
    Parameters, gradients and AdamW's two moments take `itemsize` bytes per element; itemsize and attention as for
    `saved_activations`. Not counted: an allocator's rounding, cuBLAS's workspace, and memory inside kernels. ValueError
    for another attention or optimizer.
    """
    expect_known("optimizer", optimizer, ("for-loop", "foreach", "fused"))
    saved = saved_activations(config, batch, length, itemsize, attention)
    logits, norms = saved["log-softmax of the logits"], saved["norm"] + saved["norm's output"]
    count, kept = sum(parameters(config).values()), sum(saved.values())
    head, matrix = config.vocabulary * config.width, config.width * config.hidden
    temporaries = {"for-loop": max(2 * head, 3 * matrix), "foreach": count, "fused": 0}[optimizer]
    stream, hidden = batch * length * config.width, batch * length * config.hidden
    behind = kept - logits - norms // (2 * config.layers + 1)  # what is kept when the last layer's turn comes
    inside = [_in_attention(config, layer, batch, length, itemsize, attention) for layer in (0, config.layers - 1)]
    return {
        "loss": itemsize * 3 * count + kept + 2 * logits,
        "mlp": itemsize * (3 * count + head + matrix + stream + 2 * hidden) + behind,  # silu · up itself is gone
        "attention": itemsize * 3 * count + max(inside),
        "gradients": itemsize * (4 * count + (2 * head if config.tied else 0)),
        "update": itemsize * (4 * count + temporaries),
    }


def step_peak(
    config: TransformerConfig,
    batch: int,
    length: int,
    itemsize: int = 4,
    attention: str = "plain",
    optimizer: str = "foreach",
) -> int:
    """Return the most bytes of tensors alive in a training step: the largest of `step_peaks`."""
    return max(step_peaks(config, batch, length, itemsize, attention, optimizer).values())


def _in_attention(config: TransformerConfig, layer: int, batch: int, length: int, itemsize: int, attention: str) -> int:
    """Return the bytes, besides parameters and moments, while the backward pass is in a layer's softmax; layer 0 is
    its last."""
    below = replace(config, layers=layer + 1)
    saved = saved_activations(below, batch, length, itemsize, attention)
    last = (saved["mlp"] + (saved["attention's output"] if attention == "plain" else 0)) // (layer + 1)
    two_norms = 2 * (saved["norm"] + saved["norm's output"]) // (2 * layer + 3)  # the MLP's, and the one above
    kept = sum(saved.values()) - saved["log-softmax of the logits"] - last - two_norms
    stream, scores = batch * length * config.width, batch * config.heads * length * length
    gradients = sum(parameters(config).values()) - sum(parameters(below).values())  # of the layers above, and:
    gradients += config.width * (config.vocabulary + config.width + 3 * config.hidden)
    if attention != "plain":
        return kept + itemsize * (gradients + 5 * stream)  # of the residual stream, o, q, k and v
    rounded = 0 if itemsize == 4 else itemsize * scores  # gone: the product with v is before the softmax
    return kept - rounded + 2 * 4 * scores + itemsize * (gradients + 2 * stream)
