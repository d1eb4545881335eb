"""The pipelines of a race: our schedules and PyTorch's, with the same model, data and cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import pipelining

from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.graphs import GraphedPipeline
from labs_helpers.pipeline.schedules import gpipe, interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.split_backward import WeightGradients, leave_weights_for_later
from labs_helpers.pipeline.stages import Span, TransformerStage, cut_by_cost, equal_blocks, part_costs
from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.train import next_token_loss
from labs_helpers.transformer.training_step import fixed_batch

OURS, THEIRS = "ours", "PyTorch"
CUTS = ("equal blocks", "equal cost")


@dataclass(frozen=True)
class Candidate:
    """A pipeline that takes part. make: builds its schedule. chunks: stages per rank. cut: one of CUTS. Ours only:
    fused: add the gradients of weights in place, outside autograd; graphs: replay CUDA graphs."""

    library: str
    name: str
    make: Any
    chunks: int = 1
    cut: str = "equal blocks"
    fused: bool = True
    graphs: bool = False

    def __str__(self) -> str:
        special = (self.cut, self.cut != CUTS[0]), ("autograd", not self.fused), ("CUDA graphs", self.graphs)
        return ", ".join([self.name, *[text for text, holds in special if holds]])


CANDIDATES = (
    Candidate(THEIRS, "GPipe", pipelining.ScheduleGPipe),
    Candidate(THEIRS, "1F1B", pipelining.Schedule1F1B),
    Candidate(THEIRS, "interleaved", pipelining.ScheduleInterleaved1F1B, 2),
    Candidate(THEIRS, "zero bubble", pipelining.ScheduleInterleavedZeroBubble, 2),
    Candidate(THEIRS, "1F1B", pipelining.Schedule1F1B, cut="equal cost"),
    Candidate(OURS, "GPipe", gpipe),
    Candidate(OURS, "1F1B", one_f_one_b),
    Candidate(OURS, "1F1B", one_f_one_b, fused=False),
    Candidate(OURS, "interleaved", interleaved, 2),
    Candidate(OURS, "ZB-H1", zero_bubble),
    Candidate(OURS, "1F1B", one_f_one_b, cut="equal cost"),
    Candidate(OURS, "ZB-H1", zero_bubble, cut="equal cost"),
    Candidate(OURS, "1F1B", one_f_one_b, graphs=True),
    Candidate(OURS, "interleaved", interleaved, 2, graphs=True),
    Candidate(OURS, "ZB-H1", zero_bubble, graphs=True),
    Candidate(OURS, "1F1B", one_f_one_b, cut="equal cost", graphs=True),
    Candidate(OURS, "ZB-H1", zero_bubble, cut="equal cost", graphs=True),
)


def candidates_on(device: torch.device) -> list[Candidate]:
    """Return the candidates that run on a device: only NVIDIA's and AMD's GPUs have graphs."""
    return [candidate for candidate in CANDIDATES if device.type == "cuda" or not candidate.graphs]


@dataclass(frozen=True)
class Work:
    """The task of all candidates, on the ranks of `group`: micro-batches of `batch` sequences of `length` tokens."""

    config: TransformerConfig
    batch: int
    length: int
    micro_batches: int
    dtype: torch.dtype
    device: torch.device
    group: TorchCommunication

    def model(self) -> Transformer:
        """Return the whole model, with the same weights on every rank and call."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(0)
            with self.device:
                return Transformer(self.config, sdpa).to(self.dtype)

    def data(self) -> tuple[Tensor, Tensor]:
        """Return (tokens, targets) of all micro-batches, the same on every rank."""
        tokens, targets = fixed_batch(self.config, self.batch * self.micro_batches, self.length, seed=0)
        return tokens.to(self.device), targets.to(self.device)

    def spans(self, cut: str, stages: int) -> list[Span]:
        if cut == "equal blocks":
            return equal_blocks(self.config.layers, stages)
        return cut_by_cost(part_costs(self.config, self.length), stages)

    def stage(self, cut: str, stages: int, number: int) -> TransformerStage:
        """Return one stage, with the weights that the whole model of every candidate starts from."""
        return TransformerStage(self.model(), self.spans(cut, stages)[number])

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an activation between stages."""
        return self.batch, self.length, self.config.width


Step = Callable[[], Tensor]


def build(candidate: Candidate, work: Work) -> tuple[Step, Pipeline | None]:
    """Return (a step: all forward and backward passes of a batch from empty gradients, returning the mean loss on the
    last stage's rank and 0 elsewhere; our pipeline, or None)."""
    stages = candidate.chunks * work.group.size
    mine = range(work.group.rank, stages, work.group.size)
    modules = {number: work.stage(candidate.cut, stages, number) for number in mine}
    holder = nn.ModuleList(modules.values())
    tokens, targets = work.data()
    zero = torch.zeros((), device=work.device)
    if candidate.library == OURS:
        later: WeightGradients | None = leave_weights_for_later(holder) if candidate.fused else None
        schedule = candidate.make(work.group.size, work.micro_batches, *([candidate.chunks] * (candidate.chunks > 1)))
        kind = GraphedPipeline if candidate.graphs else Pipeline
        pipeline = kind(schedule, modules, next_token_loss, work.group, work.shape, work.dtype, later)
        inputs, wanted = list(tokens.chunk(work.micro_batches)), list(targets.chunk(work.micro_batches))

        def step() -> Tensor:
            holder.zero_grad(set_to_none=True)
            losses = pipeline.run(inputs, wanted)
            return torch.stack(losses).mean() if losses else zero

        return step, pipeline
    # PyTorch can divide the gradients after the pass; dividing the loss instead saves that.
    parts: list[Any] = [
        pipelining.PipelineStage(module, number, stages, work.device, group=dist.group.WORLD)
        for number, module in modules.items()
    ]
    single = issubclass(candidate.make, pipelining.schedules.PipelineScheduleSingle)
    theirs = candidate.make(
        parts[0] if single else parts, work.micro_batches, scale_grads=False,
        loss_fn=lambda logits, y: next_token_loss(logits, y) / work.micro_batches,
    )  # fmt: skip
    first, last = 0 in modules, stages - 1 in modules

    def their_step() -> Tensor:
        holder.zero_grad(set_to_none=True)
        losses: list[Tensor] = []
        theirs.step(*([tokens] * first), **({"target": targets, "losses": losses} if last else {}))
        return torch.stack(losses).sum().detach() if last else zero

    return their_step, None
