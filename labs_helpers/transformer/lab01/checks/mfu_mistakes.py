"""Compute the FLOPs per token in parts, and what common mistakes make of them and of the MFU."""

from __future__ import annotations

from typing import Any

from labs_helpers.course.verdict import Candidates
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.counts import flops_per_token, parameters

GROUPED = "k and v have kv_heads heads: their matrices are W × (kv_heads · W / heads)"
ALL_HEADS = "q and attention's output have all heads: each of their matrices is W × W"
PASSES = "forward and backward are three times the forward pass: the backward pass computes two products for each"
SEEN = "a token attends to itself and to those before it: (length + 1) / 2 tokens on average"
EVERY_HEAD = "each of the `heads` query heads has its own scores: together they are W wide"
RULE = "6 FLOPs per parameter leave out the scores, and count norms and an embedding that multiplies nothing"
PER_TOKEN = "return FLOPs per token, not per sequence"


def right(config: TransformerConfig, length: int, tokens_per_s: float, peak: float) -> tuple[float, float]:
    flops = flops_per_token(config, length, causal=True).step
    return flops, flops * tokens_per_s / peak


def parts(config: TransformerConfig, length: int) -> dict[str, Any]:
    """Return the multiplications per token of a layer and of the logits, and how often they count."""
    W = config.width
    return {
        "flops": 2,
        "passes": 3,
        "layers": config.layers,
        "q": W * W,
        "kv": 2 * W * config.head_dim * config.key_value_heads,
        "o": W * W,
        "scores": 2 * W * (length + 1) / 2,
        "mlp": 3 * W * config.hidden,
        "logits": config.vocabulary * W,
        "besides": 0,  # FLOPs that should not count
    }


def total(p: dict[str, Any]) -> float:
    layer = p["q"] + p["kv"] + p["o"] + p["scores"] + p["mlp"]
    return p["flops"] * p["passes"] * (p["layers"] * layer + p["logits"] + p["besides"])


def flops(config: TransformerConfig, length: int, tokens_per_s: float, peak: float) -> Candidates:
    p, W, F = parts(config, length), config.width, config.hidden
    embedding, norms = config.vocabulary * W, parameters(config)["norms"]
    for sentence, change in (
        ("a multiplication and its addition are two FLOPs", {"flops": 1}),
        ("this is only the forward pass; a training step has a backward pass too", {"passes": 1}),
        (PASSES, {"passes": 2}),
        (
            "recomputation does not count: forward and backward are 3 forward passes",
            {"passes": 4},
        ),
        ("every layer has these products", {"layers": 1}),
        (GROUPED, {"kv": 2 * W * W}),
        (GROUPED, {"kv": 2 * W * config.key_value_heads}),
        ("k and v are two products", {"kv": p["kv"] / 2}),
        ("attention's output is a product too, W × W", {"o": 0}),
        (ALL_HEADS, {"q": p["kv"] / 2}),
        (ALL_HEADS, {"q": p["kv"] / 2, "o": p["kv"] / 2}),
        ("q·kᵀ and p·v are products too", {"scores": 0}),
        ("q·kᵀ and p·v are two products", {"scores": p["scores"] / 2}),
        (SEEN, {"scores": 2 * W * length}),
        (SEEN, {"scores": W * length}),
        (SEEN, {"scores": 2 * W * (length + 1)}),
        (EVERY_HEAD, {"scores": p["scores"] / config.heads}),
        (EVERY_HEAD, {"scores": p["scores"] * config.key_value_heads / config.heads}),
        (PER_TOKEN, {"scores": p["scores"] * length}),
        ("the backward pass multiplies for the scores too, twice", {"scores": p["scores"] / 3}),
        ("the MLP has three matrices: gate, up and down", {"mlp": 2 * W * F}),
        ("the MLP has three matrices: gate, up and down", {"mlp": W * F}),
        *(("F is config.hidden, whatever W is", {"mlp": 3 * W * wide}) for wide in (4 * W, 8 * W / 3, int(8 * W / 3))),
        ("the logits are a product too, with V × W", {"logits": 0}),
        ("the logits multiply by V × W, whether tied or not", {"logits": 0 if config.tied else embedding}),
        ("the logits are computed once, not by each layer", {"logits": config.layers * embedding}),
        ("the embedding only looks up a row and multiplies nothing", {"besides": embedding}),
        ("the embedding multiplies nothing, and norms are not products", {"besides": embedding + norms}),
    ):
        yield sentence, total(p | change)
    yield RULE, 6 * sum(parameters(config).values())
    yield RULE, 6 * sum(parameters(config).values()) + 6 * config.layers * p["scores"]
    yield PER_TOKEN, total(p) * length
    yield "return FLOPs, not GFLOP", total(p) / 1e9
    yield "return FLOPs per token, not per second", total(p) * tokens_per_s


def share(config: TransformerConfig, length: int, tokens_per_s: float, peak: float) -> Candidates:
    of_token, mfu = right(config, length, tokens_per_s, peak)
    yield "return a share from 0 to 1, not a percentage", 100 * mfu
    yield "the fraction is upside down: divide the FLOPs per second by the peak", 1 / mfu
    yield "only the forward pass was counted", mfu / 3
    yield "these are FLOPs per token: multiply by tokens per second", of_token / peak
    yield "tokens_per_s already includes the sequence's tokens", mfu * length
    yield "peak is in FLOP/s, not in TFLOP/s", mfu / 1e12
    yield "divide the FLOPs per second by the peak", of_token * tokens_per_s
    yield RULE, 6 * sum(parameters(config).values()) * tokens_per_s / peak
    yield "do not limit it", min(1.0, mfu)
    for digits in (1, 2, 3, 4):
        yield "do not round the share", round(mfu, digits)
