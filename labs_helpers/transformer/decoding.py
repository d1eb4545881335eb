"""Generate tokens with a Transformer: prefill a static cache, then decode one token per sequence and step.

    cache = KVCache.for_model(model, batch=2, capacity=2048)
    loop = DecodeLoop(model, cache, Sampling(temperature=0.8, top_k=50, seed=1))
    tokens = loop.generate([prompt, another_prompt], 100)   # (2, 100)

The parts work alone as well: `KVCache` and `filled`, `DecodeStep`, `sampling.sample`, and the table `Operations`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.transformer.decode_operations import Operations, operations_for
from labs_helpers.transformer.decode_step import DecodeStep
from labs_helpers.transformer.kv_cache import KVCache, filled
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import Sampling

BEFORE_CAPTURE = 2  # steps before a graph is captured, which compile the kernels


class DecodeLoop:
    """A model, a cache for a batch of sequences, and a step that a CUDA graph replays.

    how: greedy by default. operations: by default `operations_for(cache)`. graph: by default on a
    GPU. One graph serves all lengths, because its kernels read them from the device. ValueError for a graph without a
    GPU.
    """

    def __init__(
        self,
        model: Transformer,
        cache: KVCache,
        how: Sampling | None = None,
        operations: Operations | None = None,
        graph: bool | None = None,
    ) -> None:
        device, on_gpu = cache.k.device, cache.k.is_cuda
        if graph and not on_gpu:
            raise ValueError("graph is True, which needs a GPU: there are no CUDA graphs on a CPU")
        self.how, self.model, self.graph = how or Sampling(), model, on_gpu if graph is None else graph
        self.cache, operations = cache, operations or operations_for(cache)
        self.step_logits = DecodeStep(model, cache, operations)
        self.append = operations.sampler(model.config.vocabulary, self.how)
        # The tokens of all positions, and of the next position: the last sampled token is not in the cache yet.
        self.tokens = torch.zeros(cache.batch, cache.capacity + 1, dtype=torch.int64, device=device)
        self.current = torch.zeros(cache.batch, dtype=torch.int64, device=device)
        self.seed = torch.tensor(self.how.seed, dtype=torch.int64, device=device)
        self.longest = 0  # of the sequences, in positions of the cache
        self._graph: torch.cuda.CUDAGraph | None = None

    @torch.no_grad()
    def prefill(self, prompts: Sequence[Tensor]) -> None:
        """Run the model's forward pass on the prompts, fill the cache, and sample each sequence's first token.

        prompts: one tensor of int64 per sequence, of any lengths from 1 to the capacity. ValueError names a prompt that
        does not fit.
        """
        lengths = self._check(prompts)
        longest = max(lengths)
        # Padding on the right: a position sees only those before it, so none of the prompt's sees the padding.
        padded = torch.stack([F.pad(prompt, (0, longest - len(prompt))) for prompt in prompts]).to(self.tokens.device)
        self.tokens[:, :longest] = padded
        last = torch.tensor(lengths, dtype=torch.int32, device=padded.device) - 1
        with filled(self.cache, self.model):
            features = self.model.features(padded)
        sequences = torch.arange(len(prompts), device=padded.device)
        logits = self.model.logits(features[sequences, last.long()][:, None])[:, 0]
        self.cache.lengths.copy_(last)  # sampling counts the prompt's last position
        self.append(logits.contiguous(), self.seed, self.cache.lengths, self.tokens, self.current)
        self.longest = longest

    @torch.no_grad()
    def step(self) -> None:
        """Decode one token of every sequence: store its keys and values, and sample the next token. It does not wait
        for the GPU. ValueError if a sequence has no position left."""
        if self.longest >= self.cache.capacity:
            raise ValueError(f"a sequence fills all {self.cache.capacity} positions of the cache: raise its capacity")
        if self.graph and self._graph is None:
            self._graph = self._captured()
        if self._graph is None:
            self._step()
        else:
            self._graph.replay()
        self.longest += 1

    def generate(self, prompts: Sequence[Tensor], count: int) -> Tensor:
        """Return the next `count` tokens of every prompt: (B, count) of int64, on the model's device.

        ValueError for a count below 1, and for prompts that do not leave enough positions.
        """
        if count < 1:
            raise ValueError(f"count is {count}; at least one token is generated")
        longest = max(self._check(prompts))
        if longest + count - 1 > self.cache.capacity:
            raise ValueError(
                f"a prompt of {longest} tokens and {count} more take {longest + count - 1} positions (the last token "
                f"takes none), and the cache has {self.cache.capacity}"
            )
        self.prefill(prompts)
        for _ in range(count - 1):
            self.step()
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.tokens.device)
        return self.tokens.gather(1, lengths[:, None] + torch.arange(count, device=self.tokens.device))

    def _step(self) -> None:
        logits = self.step_logits(self.current)
        self.append(logits, self.seed, self.cache.lengths, self.tokens, self.current)

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Capture a step. The steps before it write where the next step writes, and what they changed is put back."""
        before = [state.clone() for state in (self.cache.lengths, self.tokens, self.current)]

        def put_back() -> None:
            for state, value in zip((self.cache.lengths, self.tokens, self.current), before, strict=True):
                state.copy_(value)

        return captured(self._step, put_back)

    def _check(self, prompts: Sequence[Tensor]) -> list[int]:
        """Return the prompts' lengths. ValueError or TypeError names a prompt that does not fit."""
        if len(prompts) != self.cache.batch:
            raise ValueError(
                f"there are {len(prompts)} prompts, and the loop was made for a batch of {self.cache.batch}"
            )
        for number, prompt in enumerate(prompts):
            if not isinstance(prompt, Tensor) or prompt.dtype != torch.int64:
                kind = prompt.dtype if isinstance(prompt, Tensor) else type(prompt).__name__
                raise TypeError(f"prompt {number} is {kind}, not a tensor of int64")
            if prompt.ndim != 1 or len(prompt) == 0:
                raise ValueError(f"prompt {number} is {tuple(prompt.shape)}, not (length,) of one token or more")
            if len(prompt) > self.cache.capacity:
                raise ValueError(
                    f"prompt {number} has {len(prompt)} tokens, and the cache {self.cache.capacity} positions"
                )
            low, high = int(prompt.min()), int(prompt.max())
            if low < 0 or high >= self.model.config.vocabulary:
                wrong = low if low < 0 else high
                raise ValueError(
                    f"prompt {number} has token {wrong}, and the vocabulary 0 to {self.model.config.vocabulary - 1}"
                )
        return [len(prompt) for prompt in prompts]


@functools.cache
def _capture_stream(device: int) -> torch.cuda.Stream:
    """Return the stream for all captures on a device. PyTorch reuses memory, even of one pool, within a stream alone,
    and gives each stream its own workspace for matrix products."""
    return torch.cuda.Stream(device)


def captured(step: Callable[[], None], put_back: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Capture a step in a CUDA graph. It runs a few times before, and `put_back` undoes each of these runs. pool: of
    memory, for graphs that keep nothing in it from one to the next."""
    stream = _capture_stream(torch.cuda.current_device())
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(BEFORE_CAPTURE):
            step()
            put_back()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        step()
    return graph
