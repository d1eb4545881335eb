"""The forward passes of the engine on a paged cache: a token for many requests at once, and chunks of prompts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labs_helpers.serving.chunks import ChunkAttention, Span, upload
from labs_helpers.serving.inputs import FIELDS, Inputs, values_of
from labs_helpers.serving.paged_attention import paged_attention
from labs_helpers.serving.paged_cache import PagedCache, Rows
from labs_helpers.serving.request import Request
from labs_helpers.serving.sampling import choose
from labs_helpers.serving.scheduler import Chunk
from labs_helpers.transformer.decode_operations import KERNELS, PLAIN, Attend, Operations
from labs_helpers.transformer.decode_step import RowsForward
from labs_helpers.transformer.decoding import captured
from labs_helpers.transformer.model import Transformer

FEW = 64  # rows of a decoding step up to which `few_rows` computes its products


class Passes:
    """Both kinds of pass of one model. Nothing here waits for the GPU, once graphs are captured.

    operations: of the decoding rows; by default one launch per product for 16-bit floats on a GPU, else plain PyTorch.
    graph: whether a CUDA graph per power of two replays the decoding rows; by default on a GPU.
    """

    def __init__(
        self,
        model: Transformer,
        cache: PagedCache,
        slots: int,
        operations: Operations | None = None,
        graph: bool | None = None,
    ) -> None:
        self.cache, self.device = cache, cache.k.device
        half = self.device.type == "cuda" and cache.k.dtype in (torch.float16, torch.bfloat16)
        rows = rows_of(slots)
        self.decoding = RowsForward(model, operations or default_operations(half, rows), cache.capacity)
        self.chunked = copy.copy(self.decoding)  # with the same weights
        self.chunked.operations = KERNELS if half else PLAIN
        self.inputs = Inputs(rows, -(-cache.capacity // cache.size), self.device)
        self.graph = self.device.type == "cuda" if graph is None else graph
        self._steps: dict[int, Callable[[], None]] = {}
        self._choose = chooser(model.config.vocabulary, half)

    def decode(self, requests: list[Request], width: int) -> None:
        """Compute a token for every request, at `inputs.tokens[row]`; up to `width` rows and to a power of two, the
        rest is padding."""
        rows = rows_of(width)
        if self.graph:
            step = self.step(rows)
            self.inputs.fill(requests, rows)
            step()
        else:
            self.inputs.fill(requests, rows)
            blocks = max(len(request.table.blocks) for request in requests)
            self._step(rows, *self._attention(rows, blocks))

    def step(self, rows: int) -> Callable[[], None]:
        """Return the replay of the graph for this many rows, which is captured at the first call."""
        if rows not in self._steps:
            inputs, (view, attend) = self.inputs, self._attention(rows, self.inputs.on_device["table"].shape[1])
            sampled = inputs.tokens.clone()
            inputs.clear()
            graph = captured(lambda: self._step(rows, view, attend), lambda: None)
            inputs.tokens.copy_(sampled)
            self._steps[rows] = graph.replay
        return self._steps[rows]

    def chunks(self, chunks: list[Chunk]) -> None:
        """Compute chunks. The tokens that they sample go, in order, to `inputs.tokens[inputs.rows + …]`."""
        spans = [Span(chunk.start, chunk.stop, self._blocks(chunk.request, chunk.stop)) for chunk in chunks]
        tokens = [token for chunk in chunks for token in chunk.request.tokens[chunk.start : chunk.stop]]
        x = self.features(tokens, spans)
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

    def features(self, tokens: Sequence[int], spans: Sequence[Span]) -> Tensor:
        """Return the residual stream, (rows, width), of all spans' tokens, one span after the other."""
        attend = ChunkAttention(spans, self.cache.size, self.device)
        at = upload(tokens, torch.int64, self.device)
        return self.chunked.features(at, attend.positions, self.cache.k, self.cache.v, attend)

    def _attention(self, rows: int, blocks: int) -> tuple[Rows, Attend]:
        fields, heads = self.inputs.on_device, self.decoding.model.config.heads
        view = Rows(fields["length"][:rows], fields["table"][:rows, :blocks])
        return view, paged_attention(self.cache, view, heads)

    def _step(self, rows: int, view: Rows, attend: Attend) -> None:
        fields, cache, forward = self.inputs.on_device, self.cache, self.decoding
        current = self.inputs.tokens[fields["source"][:rows]]
        logits = forward.logits(forward.features(current, view.lengths, cache.k, cache.v, attend))
        self._choose(logits, {name: fields[name][:rows] for name in FIELDS}, self.inputs.tokens[:rows])

    def _blocks(self, request: Request, positions: int) -> list[int]:
        return request.table.blocks[: -(-positions // self.cache.size)]


def rows_of(requests: int) -> int:
    """Return the number of rows of a decoding step: a power of two, so that a few graphs serve all numbers."""
    return 1 << (requests - 1).bit_length()


def default_operations(half: bool, rows: int) -> Operations:
    """Return the operations for decoding rows of 16-bit floats on a GPU, or of others anywhere."""
    if not half:
        return PLAIN
    from labs_helpers.quantization.decode_operations import few_rows_operations

    return few_rows_operations() if rows <= FEW else KERNELS


def chooser(vocabulary: int, kernel: bool) -> Callable[[Tensor, dict[str, Tensor], Tensor], None]:
    """Return a function that stores the tokens chosen from logits, for the parameters of `values_of`."""
    if kernel:
        from labs_helpers.serving.kernels.choose import ChooseLaunch

        launch = ChooseLaunch(vocabulary)
        return lambda logits, how, chosen: launch(
            logits, how["u"], how["temperature"], how["top_k"], how["top_p"], chosen
        )
    return lambda logits, how, chosen: chosen.copy_(
        choose(logits, how["u"], how["temperature"], how["top_k"], how["top_p"])
    )
