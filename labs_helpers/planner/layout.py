"""A layout: how the GPUs of a cluster share a model and the sequences of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from labs_helpers.planner.accounting import DEFAULT, LAYOUTS, STAGES
from labs_helpers.planner.memory import Buffers
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.step_time import CONTENTION
from labs_helpers.planner.volume import sends_once
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.counts.known import expect_known

# Fraction of the dense 16-bit peak that large matrix products reach: the planner's only fitted constant. With it, the
# errors of two rows of published.py cancel, GPT 145.6B on A100s and Llama 3 on 8,192 H100s.
PRODUCTS = 0.67


class Layout(NamedTuple):
    """The number of ranks along each dimension, and what each rank does with its part of the model.

    Ranks are numbered with tp fastest, then cp, dp and pp. Tensor-parallel groups, which send most, therefore share a
    node, and pipeline ranks, which send least, are on different ones. stage: of ZeRO, among the dp · cp ranks that
    hold the same part of the model.
    """

    dp: int
    tp: int = 1
    pp: int = 1
    cp: int = 1  # ranks that share each sequence (context parallelism)
    chunks: int = 1  # v, parts of the model per pipeline rank
    micro_batch: int = 1  # sequences
    stage: str = "DDP"
    sequence_parallel: bool = False
    checkpoint: bool = False  # every block keeps only its input and is recomputed

    @property
    def gpus(self) -> int:
        return self.dp * self.cp * self.tp * self.pp

    def __str__(self) -> str:
        return f"dp {self.dp} × tp {self.tp} × pp {self.pp}" + f" × cp {self.cp}" * (self.cp > 1)


@dataclass(frozen=True)
class Run:
    """A training run before its layout is chosen: `batch` sequences of `length` tokens per step, on all GPUs together.

    states: bytes per parameter, one of LAYOUTS. attention: "plain" stores the L × L scores, others do not. stages,
    checkpoint, sequence_parallel: what `find_layouts` may use. efficiency: fraction of the GPU's dense 16-bit peak that
    large matrix products reach. contention: as in `StepTime`. Raise ValueError for impossible values.
    """

    model: Model
    batch: int
    length: int = 2048
    states: str = DEFAULT
    attention: str = "sdpa"
    stages: tuple[str, ...] = tuple(STAGES)
    checkpoint: tuple[bool, ...] = (False, True)
    sequence_parallel: bool = True
    efficiency: float = PRODUCTS
    contention: float = CONTENTION

    def __post_init__(self) -> None:
        for name in ("batch", "length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 < self.efficiency <= 1:
            raise ValueError(f"efficiency is {self.efficiency}; it must be above 0 and at most 1")
        expect_known("states", self.states, LAYOUTS)
        expect_known("attention", self.attention, ATTENTIONS)
        if not self.stages or not self.checkpoint:
            raise ValueError("stages and checkpoint must each allow at least one choice")
        for stage in self.stages:
            expect_known("stage", stage, STAGES)

    def micro_batches(self, layout: Layout) -> int:
        """Return the micro-batches per step. Raise ValueError if the layout does not divide the batch."""
        each = layout.dp * layout.micro_batch
        if self.batch % each:
            micro = f" × micro-batch {layout.micro_batch}" if layout.micro_batch > 1 else ""
            raise ValueError(f"dp {layout.dp}{micro} does not divide the batch of {self.batch}")
        return self.batch // each

    def tokens(self, layout: Layout) -> int:
        """Return the tokens of a micro-batch on one rank: cp ranks share each sequence."""
        return layout.micro_batch * self.length // layout.cp

    def buffers(self, layout: Layout) -> Buffers:
        """Return buckets of 40 million gradients, or of 1 million per data-parallel rank, Megatron-Core's defaults.

        The second, with which a ring over many ranks sends fewer messages, only applies where gradients stay whole.
        """
        elements = 40_000_000
        if sends_once(layout.stage):
            elements = max(elements, 1_000_000 * layout.dp * layout.cp)
        return Buffers(LAYOUTS[self.states].gradients * elements)

    def flops(self) -> float:
        """Return the FLOPs of a step without recomputation, the numerator of MFU; a query has (L + 1) / 2 keys."""
        return self.model.flops_per_token(self.length, causal=True) * self.batch * self.length
