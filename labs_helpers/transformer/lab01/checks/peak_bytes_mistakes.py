"""Compute `peak_bytes` in parts; a mistake is the same computation with other values of the parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labs_helpers.course.verdict import Candidates
from labs_helpers.transformer.config import TransformerConfig

Parts = dict[str, Any]
Change = tuple[str, Parts]

MOMENTS = "AdamW's moments take `itemsize` bytes per element here"
LOSS = "the loss's softmax needs three tensors as wide as V: the log-softmax and two gradients"
WIDE = "the log-softmax and its gradients are float32 for any itemsize"
LAST = "the last layer's softmax needs three tensors as large as the probabilities: these and two gradients"
GONE = (
    "in the last layer's softmax the log-softmax, the last norm's tensors and what the table has below that layer's "
    "float32 probabilities are gone"
)


def parts(config: TransformerConfig, batch: int, length: int, itemsize: int) -> Parts:
    """Return the parts of the peak: numbers of parameters, and the bytes that a layer and the loss keep, by name."""
    tokens, W, F = batch * length, config.width, config.hidden
    scores, logits = batch * config.heads * length**2, tokens * config.vocabulary
    return {
        "itemsize": itemsize,
        "layers": config.layers,  # how often a layer's activations are kept
        "backward": 3 * itemsize,  # bytes per parameter while the backward pass is in a softmax
        "update": 5 * itemsize,
        "head": config.vocabulary * W,
        "heads": 1 if config.tied else 2,  # embedding, and the output if it is not tied
        "attention": config.layers * 4 * W * W,
        "swiglu": config.layers * 3 * W * F,
        "norms": (2 * config.layers + 1) * W,
        "norm": tokens * W * (4 + 2 * itemsize),
        "qkv": 3 * itemsize * tokens * W,
        "mask": length**2,
        "probabilities": 4 * scores,
        "rounded": 0 if itemsize == 4 else itemsize * scores,
        "output": itemsize * tokens * W,
        "mlp": 4 * itemsize * tokens * F,
        "logits": 4 * logits,
        "of logits": 2 * 4 * logits,  # gradients during the loss's softmax
        "of scores": 2 * 4 * scores,  # and during the last layer's
    }


def points(p: Parts) -> dict[str, float]:
    """Return the bytes at each of the three points."""
    parameters = p["heads"] * p["head"] + p["attention"] + p["swiglu"] + p["norms"]
    above = p["norm"] + p["qkv"] + p["mask"] + p["probabilities"]
    layer = above + p["rounded"] + p["output"] + p["norm"] + p["mlp"]
    states = p["backward"] * parameters
    return {
        "loss": states + p["layers"] * layer + p["norm"] + p["logits"] + p["of logits"],
        "softmax": states + (p["layers"] - 1) * layer + above + p["of scores"],
        "update": p["update"] * parameters,
    }


def mistakes(config: TransformerConfig, batch: int, length: int, itemsize: int) -> Candidates:
    """Return (sentence, the answer it leads to) for each mistake, in the same order for every shape."""
    p = parts(config, batch, length, itemsize)
    for sentence, change in (*_of_parameters(p, config), *_of_activations(p, config, batch, length)):
        yield sentence, max(points(p | change).values())
    yield "batch is left out", max(points(parts(config, 1, length, itemsize)).values())
    for other in (4, 2):
        yield "itemsize is left out", max(points(parts(config, batch, length, other)).values())
    yield from _of_points(p)


def _of_parameters(p: Parts, config: TransformerConfig) -> Iterator[Change]:
    size, W, F = p["itemsize"], config.width, config.hidden
    for sentence, backward, update in (
        ("the backward pass begins without gradients: only parameters and two moments exist", 4 * size, 5 * size),
        ("AdamW's moments are left out", size, 3 * size),
        ("AdamW's moments are left out", 2 * size, 3 * size),
        ("AdamW keeps two moments per parameter", 2 * size, 4 * size),
        ("the update also needs a temporary as large as all parameters", 3 * size, 4 * size),
        ("the update, or its gradients, are left out: it is the peak if there are few tokens", 3 * size, 3 * size),
        ("parameters, gradients and moments take `itemsize` bytes per element", 6, 10),
        ("parameters, gradients and moments take `itemsize` bytes per element", 12, 20),
        ("this step keeps no float32 copies of the weights", size + 12, 2 * size + 12),
        (MOMENTS, size + 8, 3 * size + 8),
        (MOMENTS, size + 8, 5 * size),
        (MOMENTS, 3 * size, 3 * size + 8),
    ):
        yield sentence, {"backward": backward, "update": update}
    for heads in (2, 3 - p["heads"]):
        yield "a tied output is the embedding and adds no parameters", {"heads": heads}
    yield "an output that is not tied adds its own parameters to the embedding's", {"heads": 1}
    yield "embedding and output have parameters, V × W", {"heads": 0}
    for count in (1, 2):
        yield "SwiGLU has three matrices W × F", {"swiglu": p["swiglu"] * count / 3}
    for count in (1, 2, 3):
        yield "attention has four matrices W × W", {"attention": p["attention"] * count / 4}
    for wide in (4 * W, int(8 * W / 3), 3 * W, 2 * W):
        yield "F is config.hidden, independent of W", {name: p[name] * wide / F for name in ("swiglu", "mlp")}
    yield "every layer has its own parameters", {name: p[name] / config.layers for name in ("attention", "swiglu")}


def _of_activations(p: Parts, config: TransformerConfig, batch: int, length: int) -> Iterator[Change]:
    size, scores, W, low = p["itemsize"], p["probabilities"] // 4, batch * length * config.width, p["itemsize"] / 4
    yield "every layer keeps its own activations", {"layers": 1}
    for sentence, share in (
        ("each head has a probability for every pair: they grow with the square of the length", 1 / length),
        ("every head has its own probabilities", 1 / config.heads),
        ("every sequence of the batch has its own probabilities", 1 / batch),
        ("only tokens of the same sequence form pairs, not those of the whole batch", batch),
        ("plain attention keeps every pair, including those that the mask hides", 1 / 2),
        ("plain attention keeps every pair, including those that the mask hides", (length + 1) / (2 * length)),
    ):
        yield sentence, {name: share * p[name] for name in ("probabilities", "rounded", "of scores")}
    yield "each layer keeps a mask, one byte per pair", {"mask": 0}
    for mask in (size * length**2, 4 * length**2, scores, size * scores, 4 * scores):
        yield "a layer's mask serves all heads and sequences, and is bool: length · length bytes", {"mask": mask}
    for rounded in (p["rounded"], 0):
        for of_scores in (p["of scores"], 2 * size * scores):
            change = {"probabilities": size * scores, "rounded": rounded if size < 4 else 0, "of scores": of_scores}
            yield "the softmax's probabilities are float32 for any itemsize", change
    yield "rounded probabilities are kept in addition to the float32 ones", {"rounded": 0}
    yield "in float32 the probabilities are kept only once, because nothing is rounded", {"rounded": size * scores}
    for count in (0, 1, 2, 3, 5):
        yield "SwiGLU keeps four tensors F wide", {"mlp": p["mlp"] * count / 4}
    yield "SwiGLU's tensors are F wide, not W", {"mlp": 4 * p["output"]}
    yield "the tensors that norms keep are left out", {"norm": 0}
    for nbytes in (3 * size, 4 + size, 2 * size, 4, size):
        yield "a norm keeps three tensors, each W wide: x in float32, and two of `itemsize`", {"norm": nbytes * W}
    yield "each layer has two norms", {"output": p["output"] - p["norm"]}
    for count in (0, 1):
        yield "q, k and v are kept, each W wide", {"qkv": count * p["output"]}
    for once in (0, p["logits"]):
        yield "the log-softmax is kept once, not by each layer", {"mlp": p["mlp"] + p["logits"], "logits": once}
    for count in (0, 1, 2, 4):
        yield LOSS, {"logits": 0, "of logits": count * p["logits"]}
    for names in (("logits", "of logits"), ("of logits",), ("logits",)):
        yield WIDE, {name: low * p[name] for name in names}
    both = {name: low * p[name] for name in ("of logits", "of scores")}
    yield "the gradients in both softmaxes are float32, whatever itemsize says", both
    for share in (low, (1 + low) / 2):
        yield "the gradients of probabilities and scores are float32", {"of scores": share * p["of scores"]}
    for count in (1, 3):
        yield LAST, {"of scores": count * p["probabilities"]}
    yield "the backward pass computes one layer's softmax at a time", {"of scores": p["layers"] * p["of scores"]}


def _of_points(p: Parts) -> Candidates:
    right = points(p)
    loss, softmax, update = right.values()
    states = update * p["backward"] / p["update"]
    below = loss - p["of logits"] - p["logits"] - p["norm"] + p["of scores"]
    layer = (below - p["of scores"] - states) / p["layers"]
    yield "the last layer's softmax is left out: it is the peak if sequences are long", max(loss, update)
    yield "the loss's softmax is left out: it is the peak for most shapes", max(softmax, update)
    both = p["logits"] + p["norm"]
    others = (softmax + both, softmax + p["logits"], softmax + p["rounded"])
    for there in (below, below + p["logits"], below + p["norm"], below + both, *others):
        yield GONE, max(there, loss, update)
    yield "the last norm keeps three tensors, too", max(loss - p["norm"], softmax, update)
    yield "few parameters have a gradient in the last layer's softmax", max(softmax + update / 5, loss, update)
    for kept in (layer, p["layers"] * layer):
        yield "no activations remain at the update", max(update + kept, loss, softmax)
    without = max(softmax - (p["layers"] - 1) * layer, loss, update)
    yield "during the last layer's softmax, the layers below keep all their activations", without
    most = max(loss, softmax)
    for at_once in (sum(right.values()), loss + p["of scores"], most + update, most - states + update):
        yield "the three points come one after another: take the largest, not the sum", at_once
    for one in (*right.values(), min(right.values()), sum(right.values()) / 3, (loss + softmax) / 2):
        yield "the largest of the three counts", one
    for unit in (1e9, 1e6, 1e3, 2**30, 2**20, 2**10, 1 / 8):
        yield "return bytes", max(right.values()) / unit
