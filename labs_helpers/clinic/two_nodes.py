"""The training program of the clinic on two nodes: the ranks of a node share each model, and the nodes share the
data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.utils.data import DistributedSampler, Sampler

from labs_helpers.clinic.training import Training
from labs_helpers.communication.interface import Communication
from labs_helpers.communication.mesh import Mesh
from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy
from labs_helpers.tensor_parallel.parallel_transformer import ParallelTransformer
from labs_helpers.tensor_parallel.placement import axes
from labs_helpers.transformer.attentions import sdpa


class OnTwoNodes(Training):
    """The program with data parallelism × tensor parallelism: pairs of ranks train one model each, on the same data.

    placement: whether the tensor-parallel pairs are 'inside' nodes or 'across' them; see `tensor_parallel.placement`.
    """

    ranks, ranks_per_node = 4, 2
    batch = 2 * Training.batch  # sequences per pair
    placement = "inside"

    def __init__(self, group: Communication, seed: int) -> None:
        self.mesh = Mesh(group, axes(group.size // 2, 2, self.placement))
        super().__init__(group, seed)

    @property
    def groups(self) -> Mapping[str, Communication]:
        return self.mesh

    @property
    def part(self) -> int:
        return self.mesh.place["tp"]

    def make_model(self) -> nn.Module:
        return ParallelTransformer.from_full(self.config, super().make_model().state_dict(), self.mesh["tp"], sdpa)

    def sampler(self, data: Any) -> Sampler[int]:
        dp = self.mesh["dp"]
        return DistributedSampler(data, dp.size, dp.rank, seed=self.seed)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return vocabulary_parallel_cross_entropy(self.forward(x), y, self.mesh["tp"])

    def average_gradients(self) -> None:
        self.mesh["dp"].start_mean(*self.gradients()).wait()
