"""The setting that all candidates of a race share: model, data and optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs_helpers.data_parallel.ddp.nccl_group import new_overlapping_group
from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.train import next_token_loss
from labs_helpers.transformer.training_step import fixed_batch


@dataclass(frozen=True)
class Setting:
    """A model and its data. batch: sequences of `length` tokens per rank, different on each. compiled: per block."""

    config: TransformerConfig
    batch: int
    length: int
    dtype: torch.dtype
    device: torch.device
    attention: str = "sdpa"
    compiled: bool = False
    options: dict[str, Any] = field(default_factory=lambda: {"lr": 1e-4, "weight_decay": 0.1})  # AdamW's options

    def model(self, dtype: torch.dtype | None = None) -> Transformer:
        """Build the model in `dtype` (default: the setting's), with the same weights on every rank and call."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(0)
            with self.device:
                model = Transformer(self.config, ATTENTIONS[self.attention]).to(dtype or self.dtype)
        for block in model.blocks if self.compiled else ():
            # Compile forward only: ZeRO-3's and fully_shard's hooks, outside it, gather the parameters that it reads.
            block.forward = torch.compile(block.forward, fullgraph=True, dynamic=False)
        return model

    def adamw(self, parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, **self.adamw_options)

    @property
    def adamw_options(self) -> dict[str, Any]:
        return self.options | {"fused": True}

    def loss(self, model: nn.Module) -> Tensor:
        """Return the mean loss over this rank's sequences."""
        tokens, targets = self._batch
        return next_token_loss(model(tokens), targets)

    @property
    def _batch(self) -> tuple[Tensor, Tensor]:
        return _batch(self.config, self.batch, self.length, dist.get_rank(), self.device)


@cache
def _batch(config: TransformerConfig, batch: int, length: int, rank: int, device: torch.device) -> Any:
    return tuple(part.to(device) for part in fixed_batch(config, batch, length, seed=rank))


@cache
def priority_group(max_ctas: int | None = None) -> Any:
    """Return one group per max_ctas, shared by all candidates, because NCCL keeps buffers for each group."""
    return new_overlapping_group(max_ctas=max_ctas)
