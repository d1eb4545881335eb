"""A LLaMA-style decoder in plain PyTorch, nothing fused: what lab 01 profiles and the later labs shard.

Touvron et al., LLaMA, 2023. B: batch; L: length; H: query heads; Hkv: key and value heads; D: head dim; V: vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.transformer.attentions import AttentionFunction, plain
from labs_helpers.transformer.checkpointing import run_segments
from labs_helpers.transformer.config import TransformerConfig


class RMSNorm(nn.Module):
    """weight · x / √(mean(x²) + eps) over the last dimension, in float32 inside (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * normed.to(x.dtype)


def rotary_angles(
    length: int, head_dim: int, theta: float, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Return (cos, sin) of position · theta^(−2i / D), (length, D/2) each, in float32 (Su et al., RoFormer, 2021)."""
    frequency = theta ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angle = torch.arange(length, device=device, dtype=torch.float32)[:, None] * frequency
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + D/2]) of (…, L, D) by its position's angle. The pairs are halves, as in Hugging
    Face's LLaMA. (Meta's own code pairs neighbors; permuting the columns of wq and wk converts one into the other.)
    cos and sin: (L, D/2) in float32, the dtype of the computation; the result has x's dtype."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


class Attention(nn.Module):
    """Causal attention whose H query heads share Hkv key and value heads (Ainslie et al., GQA, 2023)."""

    def __init__(self, config: TransformerConfig, attention: AttentionFunction) -> None:
        super().__init__()
        self.head_dim, self.attention = config.head_dim, attention
        kv_width = config.key_value_heads * config.head_dim
        self.wq = nn.Linear(config.width, config.width, bias=False)
        self.wk = nn.Linear(config.width, kv_width, bias=False)
        self.wv = nn.Linear(config.width, kv_width, bias=False)
        self.wo = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        # The number of heads follows from the weights; it is smaller if they are split over several devices.
        q, k, v = (w(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        o = self.attention(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.wo(o.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    """down(silu(gate(x)) · up(x)) (Shazeer, GLU Variants Improve Transformer, 2020)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """x + attention(norm(x)), then x + SwiGLU(norm(x))."""

    def __init__(self, config: TransformerConfig, attention: AttentionFunction) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.width, config.norm_eps)
        self.attention = Attention(config, attention)
        self.mlp_norm = RMSNorm(config.width, config.norm_eps)
        self.mlp = SwiGLU(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """A decoder: tokens (B, L) of int64 → logits (B, L, V), in the parameters' dtype.

    attention: a function of `attentions.py`, or another with the same signature. `init_weights` draws the weights from
    torch's generator. ValueError for tokens of another shape, or longer than the context.
    """

    project = staticmethod(F.linear)  # the last product

    def __init__(self, config: TransformerConfig, attention: AttentionFunction = plain) -> None:
        super().__init__()
        self.config = config
        self.segments: list[int] = []  # sizes of checkpointed segments: see `checkpointing.checkpoint_segments`
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config, attention) for _ in range(config.layers))
        self.norm = RMSNorm(config.width, config.norm_eps)
        self.output = None if config.tied else nn.Linear(config.width, config.vocabulary, bias=False)
        self.init_weights()

    @torch.no_grad()
    def init_weights(self) -> None:
        """Initialize as GPT-2 does: every matrix from N(0, 0.02²). The matrices that write to the residual stream,
        wo and down, are divided by √(2 · layers), so that its variance does not grow with the depth. Norms are 1."""
        for name, parameter in self.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                last = name.endswith(("wo.weight", "down.weight"))
                parameter.normal_(std=0.02 / (2 * self.config.layers) ** 0.5 if last else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits(self.features(tokens))

    def features(self, tokens: Tensor) -> Tensor:
        """Return (B, L, width): the residual stream after the last block."""
        if tokens.ndim != 2 or tokens.shape[1] > self.config.context:
            raise ValueError(f"tokens are {tuple(tokens.shape)}, not (batch, up to {self.config.context})")
        return self.run_blocks(self.embedding(tokens), self.blocks, tokens.shape[1])

    def run_blocks(self, x: Tensor, blocks: Iterable[nn.Module], length: int) -> Tensor:
        """Return the residual stream (B, L, width) after some of the model's blocks. length: of the tokens."""
        cos, sin = rotary_angles(length, self.config.head_dim, self.config.rope_theta, x.device)
        if self.segments:
            return run_segments(list(blocks), self.segments, x, cos, sin)
        for block in blocks:
            x = block(x, cos, sin)
        return x

    def whole_length(self, x: Tensor) -> int:
        """Return the number of tokens per sequence that a residual stream (B, L, width) covers."""
        return x.shape[1]

    def logits(self, x: Tensor) -> Tensor:
        """Return (B, L, V) from `features`."""
        return self.project(self.norm(x), self.embedding.weight if self.output is None else self.output.weight)
