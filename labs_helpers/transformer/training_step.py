"""A training step that follows a `Setup`: `Training`.

training = Training(SIZES["tiny"], Setup(attention="sdpa"), batch=8, length=128) loss = training.forward();
training.backward(loss); training.update() # or, all of it: training.step()
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.checkpointing import checkpoint_segments, equal_segments
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.setups import AUTOCAST, OPTIMIZERS, PRECISIONS, Setup
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import adamw, next_token_loss

LEARNING_RATE = 3e-4
BEFORE_CAPTURE = 3  # steps before a graph is captured; they compile, and create the optimizer's states


class Training:
    """A model, its AdamW and one batch that stays on the device, trained according to a `Setup`.

    batch: sequences per step, of `length` tokens: bytes of `text`, or random tokens if the vocabulary is smaller. seed:
    of weights and batch; torch's generator is unchanged. device: by default this machine's. ValueError: a batch that
    the micro-batches do not divide, more segments than layers, a graph without a GPU. torch.compile keeps a model's
    code until torch._dynamo.reset(), so call that between one Training and the next.
    """

    def __init__(
        self,
        config: TransformerConfig,
        setup: Setup,
        batch: int,
        length: int,
        seed: int = 0,
        device: str | torch.device | None = None,
    ) -> None:
        self.config, self.setup = config, setup
        self.device = torch.device(device or this_machine().device)
        if batch < 1 or batch % setup.accumulate:
            raise ValueError(f"a batch of {batch} cannot be divided into {setup.accumulate} micro-batches")
        if setup.graph and self.device.type != "cuda":
            raise ValueError("graph is True, which needs a GPU: there are no CUDA graphs on a CPU")
        sizes = equal_segments(config.layers, setup.segments)
        if setup.attention == "flash":
            prepare_triton()
        on_gpu = self.device.type == "cuda"
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if on_gpu else []):
            torch.manual_seed(seed)
            with self.device:
                self.model = Transformer(config, ATTENTIONS[setup.attention]).to(PRECISIONS[setup.precision])
        checkpoint_segments(self.model, sizes)
        tokens = fixed_batch(config, batch, length, seed)
        self.batches = list(zip(*(part.to(self.device).chunk(setup.accumulate) for part in tokens), strict=True))
        self.optimizer = make_optimizer(self.model, setup)
        self.scaler = torch.amp.GradScaler(self.device.type) if setup.precision == "fp16" else None
        self._loss_of = self._compiled() if setup.compiled else self._loss
        self._graph: torch.cuda.CUDAGraph | None = None
        self._captured: Tensor | None = None
        self.captured_bytes = 0  # the allocator's peak while the graph was captured

    def _loss(self, x: Tensor, y: Tensor) -> Tensor:
        return next_token_loss(self.model(x), y)

    def _compiled(self) -> Callable[[Tensor, Tensor], Tensor]:
        if not self.setup.regional:
            return torch.compile(self._loss, fullgraph=True, dynamic=False)
        for block in self.model.blocks:  # all equal, so the first one's code serves for all
            block.compile(fullgraph=True, dynamic=False)
        head = torch.compile(lambda x, y: next_token_loss(self.model.logits(x), y), fullgraph=True, dynamic=False)
        return lambda x, y: head(self.model.features(x), y)

    def forward(self, micro_batch: int = 0) -> Tensor:
        """Return the mean loss of one micro-batch, in nats per token."""
        with self._precision(), self._autocast():
            return self._loss_of(*self.batches[micro_batch])

    def backward(self, loss: Tensor) -> None:
        """Add a micro-batch's share to the gradients; after all of them, they are those of the mean loss."""
        if self.setup.accumulate > 1:
            loss = loss / self.setup.accumulate
        if self.scaler is not None:
            loss = self.scaler.scale(loss)
        with self._precision():
            loss.backward()

    def update(self) -> None:
        """Change the parameters, and drop the gradients."""
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self) -> Tensor:
        """Run a whole step; return its mean loss, detached. It queues its work and does not wait for the GPU.

        With `graph` it replays the captured step, whose loss is one tensor that every step overwrites. The first call
        takes BEFORE_CAPTURE steps one by one, captures, and then takes its own.
        """
        if not self.setup.graph:
            return self._step()
        if self._graph is None:
            self._capture()
        assert self._graph is not None and self._captured is not None
        self._graph.replay()
        return self._captured

    def _step(self) -> Tensor:
        losses = []
        for micro_batch in range(self.setup.accumulate):
            loss = self.forward(micro_batch)
            self.backward(loss)
            losses.append(loss.detach())
        self.update()
        return losses[0] if len(losses) == 1 else torch.stack(losses).mean()

    def _capture(self) -> None:
        # All on one stream: gradients are added up on the stream of the forward pass that they were first needed by.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*capturable")  # the steps before a capture are not captured
            for _ in range(BEFORE_CAPTURE):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        gc.collect()  # nothing of those steps may be freed during the capture
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self._captured = self._step()
        self.captured_bytes = torch.cuda.max_memory_allocated()
        self._graph = graph

    def _autocast(self) -> AbstractContextManager[object]:
        dtype = AUTOCAST.get(self.setup.precision)
        return nullcontext() if dtype is None else torch.autocast(self.device.type, dtype)

    def _precision(self) -> AbstractContextManager[None]:
        wanted = {"fp32": "highest", "tf32": "high"}.get(self.setup.precision)
        return nullcontext() if wanted is None else _float32_products(wanted)


@contextmanager
def _float32_products(precision: str) -> Iterator[None]:
    """Set torch's precision of float32 products inside the block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def make_optimizer(model: torch.nn.Module, setup: Setup) -> torch.optim.AdamW:
    """Return `train.adamw` in the setup's implementation, with LEARNING_RATE."""
    groups: list[dict[str, Any]] = [
        {name: group[name] for name in ("params", "lr", "betas", "weight_decay")}
        for group in adamw(model, LEARNING_RATE).param_groups
    ]
    return torch.optim.AdamW(groups, capturable=setup.graph, **OPTIMIZERS[setup.optimizer])


def fixed_batch(config: TransformerConfig, batch: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return (x, y), (batch, length) of int64 on the CPU: the first batch of `text` if the vocabulary has all bytes,
    else random tokens."""
    if config.vocabulary >= 256:
        return next(batches("train", batch, length, seed))
    both = torch.randint(config.vocabulary, (batch, length + 1), generator=torch.Generator().manual_seed(seed))
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()
