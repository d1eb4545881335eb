"""Lab 01's transformer, sharded over a tensor-parallel group: heads, MLP, embedding and output are split.

Per block two all-reduces forward (after wo and after down) and two backward (before q, k, v and before gate, up).
scheme="naive" splits wo and down on their output instead and collects activations (GatheredLinear).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy
from labs_helpers.tensor_parallel.layers import (
    SEQUENCE,
    ColumnParallelLinear,
    GatheredLinear,
    RowParallelLinear,
    VocabularyParallelEmbedding,
)
from labs_helpers.tensor_parallel.layouts import why_not
from labs_helpers.tensor_parallel.operators import copy_to, gather_to
from labs_helpers.tensor_parallel.state import slice_state
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.attentions import AttentionFunction, plain
from labs_helpers.transformer.model import Block, RMSNorm, Transformer

SCHEMES = ("megatron", "naive")


class ParallelTransformer(Transformer):
    """tokens (B, L), the same on every rank of `group` → logits (B, L, V / p), this rank's part of the vocabulary.

    Parameters are called as in `Transformer`, and drawn on each rank for itself: `from_full` gives all ranks the parts
    of one model. sequence_parallel: between the layers each rank holds L / p of the sequence, norms included, whose
    gradients are then parts of sums (`sum_partial_gradients`). Made on the CPU, or where a `with
    torch.device(…)` around it says. ValueError: an unknown scheme, or sizes that the group does not divide.
    """

    def __init__(
        self,
        config: TransformerConfig,
        group: Communication,
        attention: AttentionFunction = plain,
        scheme: str = "megatron",
        sequence_parallel: bool = False,
    ) -> None:
        if scheme not in SCHEMES or (scheme == "naive" and sequence_parallel):
            raise ValueError(f"scheme is {scheme!r} (one of {', '.join(SCHEMES)}; the naive one splits no sequence)")
        if reasons := why_not(config, group.size):
            raise ValueError("; ".join(reasons))
        with torch.device("meta"):  # the shape of the whole model, without its memory
            super().__init__(config, attention)
        self.group, self.scheme, self.sequence_parallel = group, scheme, sequence_parallel
        # A function and no method: blocks that held a method of the model would keep it alive in a cycle.
        self.enter = partial(enter_columns, group=group, sequence_parallel=sequence_parallel)
        self.embedding = VocabularyParallelEmbedding(  # type: ignore[assignment]
            config.vocabulary, config.width, group, sequence_parallel
        )
        self.blocks = nn.ModuleList(ParallelBlock(config, attention, self) for _ in range(config.layers))
        self.norm = RMSNorm(config.width, config.norm_eps)
        if self.output is not None:
            self.output = ColumnParallelLinear(config.width, config.vocabulary, group, bias=False)
        self.init_weights()

    @classmethod
    def from_full(
        cls,
        config: TransformerConfig,
        full: Mapping[str, Tensor],
        group: Communication,
        attention: AttentionFunction = plain,
        scheme: str = "megatron",
        sequence_parallel: bool = False,
    ) -> ParallelTransformer:
        """This rank's part of the model whose `state_dict()` is `full`, of its dtype, where it is."""
        model = cls(config, group, attention, scheme, sequence_parallel)
        first = next(iter(full.values()))
        model.to(first.device, first.dtype)
        model.load_state_dict(slice_state(model, full, group))
        return model

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """`nn.Module.compile`; the collectives stay outside of the graphs (`Communication.hide_from_compiler`)."""
        self.group.hide_from_compiler()
        super().compile(*args, **kwargs)

    def features(self, tokens: Tensor) -> Tensor:
        """The residual stream after the last block, (B, L, width), or (B, L / p, width) under sequence parallelism."""
        if self.sequence_parallel and tokens.shape[1] % self.group.size:
            raise ValueError(f"tp {self.group.size} does not divide length {tokens.shape[1]}")
        return super().features(tokens)

    def logits(self, x: Tensor) -> Tensor:
        """(B, L, V / p) from `features`."""
        last = self.embedding if self.output is None else self.output
        return F.linear(self.enter(self.norm(x)), last.weight)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats per token, the same on every rank of the group. tokens, targets: (B, L)."""
        return vocabulary_parallel_cross_entropy(self(tokens), targets, self.group)


def enter_columns(x: Tensor, group: Communication, sequence_parallel: bool) -> Tensor:
    """Into column-parallel layers: from the residual stream, or this rank's part of it, to all of it."""
    return gather_to(x, group, SEQUENCE) if sequence_parallel else copy_to(x, group)


class ParallelBlock(Block):
    """Lab 01's block with a part of each matrix. Its attention finds the number of heads in the weights."""

    def __init__(self, config: TransformerConfig, attention: AttentionFunction, model: ParallelTransformer) -> None:
        with torch.device("meta"):
            super().__init__(config, attention)
        self.attention_norm = RMSNorm(config.width, config.norm_eps)
        self.mlp_norm = RMSNorm(config.width, config.norm_eps)
        group, width, hidden = model.group, config.width, config.hidden
        kv_width = config.key_value_heads * config.head_dim

        def column(in_dim: int, out_dim: int) -> nn.Linear:
            return ColumnParallelLinear(in_dim, out_dim, group, bias=False)

        def row(in_dim: int, out_dim: int) -> nn.Linear:
            if model.scheme == "naive":
                return GatheredLinear(in_dim, out_dim, group, bias=False)
            return RowParallelLinear(in_dim, out_dim, group, False, model.sequence_parallel)

        self.attention.wq = column(width, width)
        self.attention.wk, self.attention.wv = column(width, kv_width), column(width, kv_width)
        self.attention.wo = row(width, width)
        self.mlp.gate, self.mlp.up, self.mlp.down = column(width, hidden), column(width, hidden), row(hidden, width)
        self.enter = model.enter

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.enter(self.attention_norm(x)), cos, sin)
        return x + self.mlp(self.enter(self.mlp_norm(x)))
