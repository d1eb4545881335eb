"""A cluster for a plan: GPUs, nodes, and an α and a β for each kind of link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labs_helpers.collectives.cost_model import Costs, terms
from labs_helpers.measure.datasheet import DATASHEET, Datasheet, lookup

# NCCL's all-reduce of 256 MB to 1 GB reached 337 to 355 of 450 GB/s on 4 H200s, and its 6 messages took 38 µs.
LINK_SHARE = 0.8
ALPHA_INSIDE = 6e-6
# Assumed, not measured here: one 400 Gb/s port per GPU, and messages that take about twice as long.
PORT = 50e9
ALPHA_BETWEEN = 12e-6
FUNCTIONS = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter"}


@dataclass(frozen=True)
class Cluster:
    """`gpus` equal GPUs with `gpus_per_node` per node.

    The β of `inside` is that of a GPU's link, in seconds per byte in one direction. The β of `between` is that of a
    node's cable with all its ports, which its GPUs share.
    """

    name: str
    chip: Datasheet
    gpus: int
    gpus_per_node: int
    inside: Costs
    between: Costs

    @classmethod
    def of(
        cls,
        gpu: str,
        gpus: int,
        gpus_per_node: int = 8,
        inside: float | None = None,
        between: float | None = None,
        alpha_inside: float = ALPHA_INSIDE,
        alpha_between: float = ALPHA_BETWEEN,
    ) -> Cluster:
        """Make a cluster from datasheet values and measured or assumed links.

        gpu: a key of DATASHEET, or a device name from torch. inside: bytes/s of a GPU's link, by default 0.8 of the
        datasheet's. between: bytes/s of a node's cable, by default 50 GB/s per GPU. alphas: seconds per message.
        Raise ValueError for a GPU without a datasheet, and for impossible numbers.
        """
        chip = lookup(gpu)
        if chip is None:
            raise ValueError(f"there is no datasheet for {gpu!r}; choose from {', '.join(DATASHEET)}")
        per_node = min(gpus, gpus_per_node)
        if per_node < 1 or gpus % per_node:
            raise ValueError(
                f"gpus is {gpus} and gpus_per_node is {gpus_per_node}; nodes must be full and have at least 1 GPU"
            )
        inside = LINK_SHARE * chip.link_bandwidth if inside is None else inside
        between = PORT * per_node if between is None else between
        for name, value in (("inside", inside), ("between", between)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value:g} bytes/s; it must be positive")
        for alpha in (alpha_inside, alpha_between):
            if not 0 <= alpha < math.inf:
                raise ValueError(f"a message takes {alpha:g} s; it must take at least 0")
        return cls(gpu, chip, gpus, per_node, Costs(alpha_inside, 1 / inside), Costs(alpha_between, 1 / between))

    @property
    def nodes(self) -> int:
        return self.gpus // self.gpus_per_node

    def seconds(self, operation: str, nbytes: float, ranks: int, stride: int = 1) -> float:
        """Return the seconds of a collective on a whole tensor of `nbytes`, in groups of every `stride`-th GPU.

        Each group has `ranks` GPUs, and all groups run at the same time. On one node the collective uses a ring. On
        several nodes it uses the faster of a single ring and two levels (`levels.py`), and the groups of a node share
        its cable. Raise ValueError if a group is not spread equally over its nodes.
        """
        local = self._ranks_on_a_node(ranks, stride)
        nodes, function = ranks // local, FUNCTIONS[operation]
        if nodes == 1:
            return self.inside.seconds(terms(function, "ring", ranks)._replace(copied=0), nbytes)
        groups = self.gpus_per_node // local  # that share one cable
        whole, across = terms(function, "ring", ranks), terms(function, "ring", nodes)
        slower = Costs(
            self.between.alpha, max(groups * self.between.beta, self.inside.beta)
        )  # the slowest link of a ring
        flat = slower.seconds(whole._replace(copied=0), nbytes)
        within = self.inside.seconds(terms(function, "ring", local)._replace(copied=0), nbytes)
        shared = self.between.seconds(across._replace(sent=groups * across.sent, copied=0), nbytes)
        return min(flat, within + shared)

    def _ranks_on_a_node(self, ranks: int, stride: int) -> int:
        each, reach = self.gpus_per_node, ranks * stride
        local = max(1, min(ranks, each // stride))
        if ranks % local or (each % stride and stride % each) or (reach <= each and each % reach):
            raise ValueError(f"groups of {ranks}, every {stride}th GPU, are not spread equally over nodes of {each}")
        return local

    def __str__(self) -> str:
        def link(costs: Costs) -> str:
            return f"{1e-9 / costs.beta:.4g} GB/s and {1e6 * costs.alpha:.3g} µs per message"

        text = (
            f"{self.gpus} {self.name} with {self.chip.memory_bytes / 1e9:.0f} GB, each with {link(self.inside)} inside"
        )
        return text + (f"; {self.nodes} nodes, each with {link(self.between)} to the others" * (self.nodes > 1))
