"""A forward pass over chunks in CUDA graphs: one for all that lies between the attentions of two layers.

The attention's sizes change from pass to pass, and so no graph can hold it. All else depends on the number of rows
alone, which padding makes one of a few. Without graphs, PyTorch takes longer to launch such a pass than the GPU to
compute it. (vLLM calls these graphs piecewise.)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from labs_helpers.serving.chunks import ChunkAttention, rotate_and_store
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.transformer.decode_step import RowsForward
from labs_helpers.transformer.decoding import captured

# Passes of up to MOST rows compute a multiple of STEP. In larger ones, launching takes the smaller part of the time.
STEP, MOST = 128, 1024


def padded(rows: int) -> int:
    """Return the number of rows that a pass over `rows` rows computes."""
    return -(-rows // STEP) * STEP if rows <= MOST else rows


class LayerGraphs:
    """A model's forward pass over the rows of `ChunkAttention`. Its result is overwritten by the next call.

    graph: False runs the same steps without graphs, for tests on any device.
    """

    def __init__(self, forward: RowsForward, cache: PagedCache, kernels: bool, graph: bool = True) -> None:
        model = forward.model
        weight, config = model.norm.weight, model.config
        width = config.heads * config.head_dim
        self.forward, self.cache, self.kernels, self.graph = forward, cache, kernels, graph
        rows = partial(torch.zeros, dtype=weight.dtype, device=weight.device)
        self.x, self.o = rows((MOST, config.width)), rows((MOST, width))
        self.qkv = rows((MOST, width + 2 * config.key_value_heads * config.head_dim))
        self.numbers = torch.zeros(3, MOST, dtype=torch.int64, device=weight.device)  # token, position, block
        self._graphs: dict[int, list[torch.cuda.CUDAGraph]] = {}  # by the number of rows
        self._pool: Any = None

    def features(self, tokens: Tensor, attend: ChunkAttention) -> Tensor:
        """Return the residual stream, (rows, width), for tokens, (rows,), where rows ≤ MOST is `padded`."""
        rows, cache = len(tokens), self.cache
        self.prepare(rows)
        torch.stack([tokens, attend.positions, attend.block], out=self.numbers[:, :rows])
        for layer in range(len(cache.k) + 1):
            if self.graph:
                self._graphs[rows][layer].replay()
            else:
                self._between(rows, layer)
            if layer < len(cache.k):
                attend.attend(self.qkv[:rows], cache.k[layer], cache.v[layer], self.o[:rows])
        return self.x[:rows]

    def prepare(self, rows: int) -> None:
        """Capture the graphs for this number of rows, unless they are. They run on padding first."""
        if self.graph and rows not in self._graphs:
            self.numbers.zero_()
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            pieces = [partial(self._between, rows, layer) for layer in range(len(self.cache.k) + 1)]
            self._graphs[rows] = [captured(piece, lambda: None, self._pool) for piece in pieces]

    def _between(self, rows: int, layer: int) -> None:
        """Compute the end of the layer before this one and this one's q, k and v, of which it stores k and v."""
        forward, x = self.forward, self.x[:rows]
        tokens, positions, block = self.numbers[:, :rows]
        if layer:
            x.copy_(forward.after_attention(layer - 1, x, self.o[:rows]))
        else:
            x.copy_(forward.model.embedding(tokens))
        if layer < len(self.cache.k):
            qkv, k, v = self.qkv[:rows], self.cache.k[layer], self.cache.v[layer]
            qkv.copy_(forward.qkv_of(layer, x))
            rotate_and_store(qkv, forward.cos, forward.sin, positions, block, k, v, self.kernels)
