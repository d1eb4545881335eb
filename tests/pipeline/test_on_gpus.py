"""On a GPU, a pipeline of CUDA graphs computes what the eager one does, with other data in every step."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.graphs import WARM_UP, GraphedPipeline
from labs_helpers.pipeline.schedules import interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.split_backward import leave_weights_for_later
from labs_helpers.pipeline.stages import TransformerStage, equal_blocks
from labs_helpers.transformer import SIZES, Transformer
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.train import next_token_loss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
CONFIG = replace(SIZES["tiny"], layers=4)
MICRO_BATCHES, BATCH, LENGTH = 4, 2, 32


def model():
    torch.manual_seed(0)
    with torch.device("cuda"):
        return Transformer(CONFIG, sdpa)


def steps(kind, schedule):
    """Return the losses and the gradients of some steps, each with its own tokens."""
    spans = equal_blocks(CONFIG.layers, schedule.stages)
    stages = {number: TransformerStage(model(), span) for number, span in enumerate(spans)}
    holder = nn.ModuleList(stages.values())
    later = leave_weights_for_later(holder)
    shape = BATCH, LENGTH, CONFIG.width
    pipeline = kind(schedule, stages, next_token_loss, SilentCommunication(0, 1), shape, torch.float32, later)
    found = []
    for seed in range(WARM_UP + 3):
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(CONFIG.vocabulary, (MICRO_BATCHES, BATCH, LENGTH + 1), generator=generator).cuda()
        holder.zero_grad(set_to_none=True)
        losses = pipeline.run(list(tokens[..., :-1]), list(tokens[..., 1:]))
        found.append((losses, [p.grad.clone() for p in holder.parameters()]))
    return found


@pytest.mark.parametrize(
    "schedule", [one_f_one_b(1, MICRO_BATCHES), zero_bubble(1, MICRO_BATCHES), interleaved(1, MICRO_BATCHES, 2)]
)
def test_graphs_compute_what_an_eager_pipeline_does(schedule):
    for (losses, gradients), (same_losses, same_gradients) in zip(
        steps(Pipeline, schedule), steps(GraphedPipeline, schedule), strict=True
    ):
        torch.testing.assert_close(same_losses, losses)
        torch.testing.assert_close(same_gradients, gradients)
