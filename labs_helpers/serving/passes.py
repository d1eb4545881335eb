"""The forward passes of the engine on a paged cache: a token for many requests at once, and chunks of prompts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from labs_helpers.serving import paged_attention
from labs_helpers.serving.chunks import ChunkAttention, Span, upload
from labs_helpers.serving.inputs import FIELDS, Inputs, values_of
from labs_helpers.serving.layer_graphs import MOST, LayerGraphs, padded
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.serving.request import Request
from labs_helpers.serving.sampling import choose
from labs_helpers.serving.scheduler import Chunk
from labs_helpers.transformer.decode_operations import KERNELS, PLAIN, Operations
from labs_helpers.transformer.decode_step import RowsForward
from labs_helpers.transformer.decoding import captured
from labs_helpers.transformer.model import Transformer

# cuDNN's attention, which PyTorch prefers on new GPUs, makes a plan for every new length, and chunks have any length.
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
FEW = 64  # rows of a decoding step up to which `few_rows` computes its products


class Passes:
    """Both kinds of pass of one model. Nothing here waits for the GPU, once graphs are captured.

    operations: of up to FEW decoding rows; by default one launch per product where there are kernels, otherwise plain
    PyTorch. graph: whether CUDA graphs replay the decoding rows, one per power of two, and the chunks, see
    `layer_graphs`; by default on a GPU. further: of `Inputs`.
    """

    def __init__(
        self,
        model: Transformer,
        cache: PagedCache,
        slots: int,
        operations: Operations | None = None,
        graph: bool | None = None,
        further: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.cache, self.device = cache, cache.k.device
        rows, self.kernels = rows_of(slots), paged_attention.uses_kernels(cache)
        self.decoding = RowsForward(model, operations or default_operations(self.kernels), cache.capacity)
        self.chunked = copy.copy(self.decoding)  # with the same weights
        self.chunked.operations = KERNELS if self.kernels else PLAIN
        self.inputs = Inputs(rows, -(-cache.capacity // cache.size), self.device, further)
        self.graph = self.device.type == "cuda" if graph is None else graph
        self.layers = LayerGraphs(self.chunked, cache, self.kernels) if self.graph else None
        self._steps: dict[int, Callable[[], None]] = {}
        self._choose = chooser(model.config.vocabulary, self.kernels)

    def decode(self, requests: list[Request], width: int) -> None:
        """Compute a token for every request, at `inputs.tokens[row]`; up to `width` rows and to a power of two, the
        rest is padding."""
        rows = rows_of(width)
        step = self.step(rows) if self.graph else partial(self._step, rows, most_blocks(requests))
        self.inputs.fill(requests, rows)
        step()

    def step(self, rows: int) -> Callable[[], None]:
        """Return the replay of the graph for this many rows, which is captured at the first call."""
        if rows not in self._steps:
            self._steps[rows] = captured_step(self.inputs, partial(self._step, rows, None))
        return self._steps[rows]

    def chunks(self, chunks: list[Chunk]) -> None:
        """Compute chunks. The tokens that they sample go, in order, to `inputs.tokens[inputs.rows + …]`."""
        x = self.features(chunks)
        sampling, ends, end = [], [], 0
        for chunk in chunks:
            end += chunk.stop - chunk.start
            if chunk.samples:
                sampling.append(chunk.request)
                ends.append(end - 1)
        if sampling:
            logits = self.chunked.logits(x[upload(ends, torch.int64, self.device)])
            how = {name: upload(values, FIELDS[name], self.device) for name, values in values_of(sampling).items()}
            first = self.inputs.rows
            self._choose(logits, how, self.inputs.tokens[first : first + len(sampling)])

    def features(self, chunks: list[Chunk]) -> Tensor:
        """Return the residual stream, (rows, width), of all chunks' tokens, one after the other, and of padding. The
        next call may overwrite it."""
        size, cache = self.cache.size, self.cache
        spans = [Span(c.start, c.stop, c.request.table.blocks[: -(-c.stop // size)]) for c in chunks]
        tokens = [token for chunk in chunks for token in chunk.request.tokens[chunk.start : chunk.stop]]
        pad = padded(len(tokens)) - len(tokens) if self.layers else 0
        attend = ChunkAttention(spans, size, self.device, self.kernels, pad)
        at = upload(tokens + [0] * pad, torch.int64, self.device)
        with sdpa_kernel(BACKENDS):
            if self.layers and len(at) <= MOST:
                return self.layers.features(at, attend)
            return self.chunked.features(at, attend.positions, cache.k, cache.v, attend)

    def logits(self, tokens: Tensor, at: Tensor, table: Tensor, together: bool = False) -> Tensor:
        """Return the logits, (rows, V), after the tokens, (rows,), at the positions `at`, (rows,), int32, of sequences
        with these tables. together: see `paged_attention.paged_attention`."""
        forward, cache = self.decoding if len(tokens) <= FEW else self.chunked, self.cache
        attend = paged_attention.paged_attention(cache, table, forward.model.config.heads, together)
        return forward.logits(forward.features(tokens, at, cache.k, cache.v, attend))

    def _step(self, rows: int, blocks: int | None) -> None:
        fields, sampled = self.inputs.on_device, self.inputs.tokens
        logits = self.logits(sampled[fields["source"][:rows]], fields["length"][:rows], fields["table"][:rows, :blocks])
        self._choose(logits, {name: fields[name][:rows] for name in FIELDS}, sampled[:rows])


def captured_step(inputs: Inputs, step: Callable[[], None]) -> Callable[[], None]:
    """Return the replay of a step that reads `inputs`. It is captured on padding, and the sampled tokens stay."""
    sampled = inputs.tokens.clone()
    inputs.clear()
    graph = captured(step, lambda: None)
    inputs.tokens.copy_(sampled)
    return graph.replay


def most_blocks(requests: list[Request]) -> int:
    """Return the number of blocks of the longest table."""
    return max(len(request.table.blocks) for request in requests)


def rows_of(requests: int) -> int:
    """Return the number of rows of a decoding step: a power of two, so that a few graphs serve all numbers."""
    return 1 << (requests - 1).bit_length()


def default_operations(kernels: bool) -> Operations:
    """Return the operations for up to FEW rows: one launch per product, or plain PyTorch."""
    if not kernels:
        return PLAIN
    from labs_helpers.quantization.decode_operations import few_rows_operations

    return few_rows_operations()


def chooser(vocabulary: int, kernels: bool) -> Callable[[Tensor, dict[str, Tensor], Tensor], None]:
    """Return a function that stores the tokens chosen from logits, for the parameters of `values_of`."""
    if kernels:
        from labs_helpers.serving.kernels.choose import ChooseLaunch

        launch = ChooseLaunch(vocabulary)
        return lambda logits, how, chosen: launch(
            logits, how["u"], how["temperature"], how["top_k"], how["top_p"], chosen
        )

    def store(logits: Tensor, how: dict[str, Tensor], chosen: Tensor) -> None:
        chosen.copy_(choose(logits, how["u"], how["temperature"], how["top_k"], how["top_p"]))

    return store
