"""One rank's part of the model: its pipeline stages, each split over the tensor-parallel ranks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labs_helpers.communication import Mesh
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.stages import Span, TransformerStage, cut_by_cost, part_costs
from labs_helpers.pipeline.tied import share_tied_weight
from labs_helpers.tensor_parallel import ParallelTransformer
from labs_helpers.tensor_parallel.sharded_gradients import Gradient
from labs_helpers.tensor_parallel.state import split_dims
from labs_helpers.training.settings import Settings
from labs_helpers.transformer import Transformer
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.checkpointing import checkpoint_segments, equal_segments

TIED = "embedding.weight"


def first_weights(settings: Settings) -> dict[str, Tensor]:
    """Draw the whole model's weights from the seed; they are the same on every rank of every layout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        full = Transformer(settings.config)
    return {name: tensor.to(getattr(torch, settings.dtype)) for name, tensor in full.state_dict().items()}


def cut(settings: Settings) -> list[Span]:
    """Return the parts of each stage, cut so that the stages cost about the same."""
    return cut_by_cost(part_costs(settings.config, settings.length), settings.pp * settings.chunks)


class ModelPart:
    """The stages of one rank. Parameters have the names of the whole model, and each name occurs once per rank.

    tied: the name of a weight that has a copy on another rank of the pipeline, or None. The norm counts the first
    stage's weight, and not the last stage's, for which `is_copy` is True.
    """

    def __init__(self, settings: Settings, mesh: Mesh, device: str, schedule: Schedule) -> None:
        self.mesh, self.sequence_parallel, self.rank_of = mesh, settings.sequence_parallel, schedule.rank_of
        self.stages: dict[int, TransformerStage] = {}
        weights, spans = {name: tensor.to(device) for name, tensor in first_weights(settings).items()}, cut(settings)
        for number in schedule.held_by(mesh["pp"].rank):
            model = ParallelTransformer.from_full(
                settings.config, weights, mesh["tp"], sdpa, settings.scheme, settings.sequence_parallel
            )
            stage = self.stages[number] = TransformerStage(model, spans[number])
            if settings.checkpoint_activations:
                blocks = len(stage.model.blocks)
                checkpoint_segments(stage.model, equal_segments(blocks, min(1, blocks)))
        share_tied_weight(self.stages)
        self.model = nn.ModuleList(stage.model for stage in self.stages.values())
        self.parameters: dict[str, nn.Parameter] = {}
        self.dims: dict[str, int | None] = {}
        for stage in self.stages.values():
            self.parameters |= stage.model.named_parameters()
            self.dims |= split_dims(stage.model)
        has_copy = settings.config.tied and schedule.rank_of[0] != schedule.rank_of[-1]
        self.tied = TIED if has_copy and TIED in self.parameters else None
        self.is_copy = self.tied is not None and 0 not in self.stages

    def is_split(self, name: str) -> bool:
        """Whether each tensor-parallel rank has its own part of a parameter."""
        return self.dims[name] is not None

    def gradient(self, name: str, gradient: Tensor) -> Gradient:
        """Describe the gradient of a parameter, or a part of it."""
        return Gradient(gradient, self.is_split(name), counted=not (self.is_copy and name == self.tied))
