"""The same transformer with PyTorch's own tensor parallelism, `parallelize_module`, for comparison.

It uses the plan of ParallelTransformer: column-parallel q, k, v, gate and up, row-parallel wo and down, and a split
vocabulary in embedding, output and loss. q, k and v share one DTensor as their input, so its gradient is summed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.attentions import AttentionFunction


class DTensorTransformer(Transformer):
    """A Transformer with an untied output layer, sharded over a one-dimensional device mesh.

    full: the whole model's parameters, the same on every rank, on the mesh's type of device.
    """

    def __init__(
        self,
        config: TransformerConfig,
        full: Mapping[str, Tensor],
        mesh: Any,
        attention: AttentionFunction,
        sequence_parallel: bool = False,
    ) -> None:
        if config.tied:
            raise ValueError("config.tied is True, but the plan shards embedding and output separately")
        first = next(iter(full.values()))
        with first.device:
            super().__init__(config, attention)
        self.to(first.dtype)
        self.load_state_dict(full)
        parallelize_module(self, mesh, plan(sequence_parallel))

    def logits(self, x: Tensor) -> Tensor:
        assert self.output is not None
        result: Tensor = self.output(self.norm(x))  # call the modules, because the plan's hooks are on them
        return result

    def run(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Compute the gradients, and return the mean loss; tokens, targets: (B, L), the same on every rank."""
        with loss_parallel():
            loss = F.cross_entropy(self(tokens).flatten(0, 1).float(), targets.flatten())
            loss.backward()
        return loss.full_tensor().detach() if isinstance(loss, DTensor) else loss.detach()


def plan(sequence_parallel: bool) -> dict[str, Any]:
    """Return the plan that tells `parallelize_module` how to shard each module of a Transformer."""
    between: Any = Shard(1) if sequence_parallel else Replicate()  # of the residual stream
    rows: dict[str, Any] = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=between),
        "output": ColwiseParallel(input_layouts=between, output_layouts=Shard(-1), use_local_output=False),
        "blocks.*.attention": PrepareModuleInput(
            input_layouts=(between, None, None), desired_input_layouts=(Replicate(), None, None)
        ),
        "blocks.*.mlp": PrepareModuleInput(input_layouts=(between,), desired_input_layouts=(Replicate(),)),
    }
    for name in ("attention.wq", "attention.wk", "attention.wv", "mlp.gate", "mlp.up"):
        rows[f"blocks.*.{name}"] = ColwiseParallel()
    for name in ("attention.wo", "mlp.down"):
        rows[f"blocks.*.{name}"] = RowwiseParallel(output_layouts=between)
    if sequence_parallel:
        rows |= {name: SequenceParallel() for name in ("blocks.*.attention_norm", "blocks.*.mlp_norm", "norm")}
    return rows


def local(gradient: Tensor) -> tuple[Tensor, bool]:
    """Return (this rank's tensor of a parameter's gradient, whether it is only a part of the gradient)."""
    if not isinstance(gradient, DTensor):
        return gradient, False
    whole = all(placement.is_replicate() for placement in gradient.placements)
    return gradient.to_local(), not whole
