"""Lab 01's transformer, sharded over a tensor-parallel group: heads, MLP, embedding and output are split.

A block makes two all-reduces forward (after wo and after down) and two backward (before q, k, v and before gate, up).
scheme="naive" splits wo and down on their output instead, and collects activations (GatheredLinear).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
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
    """Map tokens (B, L), the same on every rank of `group`, to this rank's logits (B, L, V / p).

    Parameters have the names of `Transformer`. Each rank draws its own; `from_full` gives all ranks the parts of one
    model. sequence_parallel: between the layers and in the norms each rank holds L / p of the sequence, so the norms'
    gradients have to be summed over the ranks (`sum_partial_gradients`). Created on the CPU, or on the device of an
    enclosing `with torch.device(…)`. Raises ValueError for an unknown scheme, or sizes that the group does not divide.
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
            raise ValueError(f"scheme is {scheme!r} (one of {', '.join(SCHEMES)}; naive has no sequence parallelism)")
        if reasons := why_not(config, group.size):
            raise ValueError("; ".join(reasons))
        with torch.device("meta"):  # the shape of the whole model, without its memory
            super().__init__(config, attention)
        self.group, self.scheme, self.sequence_parallel = group, scheme, sequence_parallel
        # A function, not a method: blocks that held a method of the model would form a reference cycle.
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
        """Return this rank's part of the model whose `state_dict()` is `full`, with its dtype and device."""
        model = cls(config, group, attention, scheme, sequence_parallel)
        first = next(iter(full.values()))
        model.to(first.device, first.dtype)
        model.load_state_dict(slice_state(model, full, group))
        return model

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile as `nn.Module.compile` does, with collectives outside the graphs (`hide_from_compiler`)."""
        self.group.hide_from_compiler()
        super().compile(*args, **kwargs)

    def features(self, tokens: Tensor) -> Tensor:
        """Return the residual stream after the last block: (B, L, width), or sequence-parallel (B, L / p, width)."""
        if self.sequence_parallel and tokens.shape[1] % self.group.size:
            raise ValueError(f"tp {self.group.size} does not divide length {tokens.shape[1]}")
        return super().features(tokens)

    def whole_length(self, x: Tensor) -> int:
        return x.shape[1] * (self.group.size if self.sequence_parallel else 1)

    def logits(self, x: Tensor) -> Tensor:
        """Map `features` to this rank's logits, (B, L, V / p)."""
        last = self.embedding if self.output is None else self.output
        return self.project(self.enter(self.norm(x)), last.weight)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy in nats per token, the same on every rank. tokens, targets: (B, L)."""
        return vocabulary_parallel_cross_entropy(self(tokens), targets, self.group)


def enter_columns(x: Tensor, group: Communication, sequence_parallel: bool) -> Tensor:
    """Prepare the residual stream for column-parallel layers; sequence-parallel ranks gather their parts first."""
    return gather_to(x, group, SEQUENCE) if sequence_parallel else copy_to(x, group)


class ParallelBlock(Block):
    """Lab 01's block with a part of each matrix; its attention infers the number of heads from the weights."""

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
