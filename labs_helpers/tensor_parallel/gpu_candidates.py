"""Candidates for the GPU benchmark: our sharded transformer and the one that `parallelize_module` builds, each eager
and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from labs_helpers.communication import Communication
from labs_helpers.communication.gradient_average import GradientAverage
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.tensor_parallel import traffic
from labs_helpers.tensor_parallel.dtensor import DTensorTransformer, local
from labs_helpers.tensor_parallel.parallel_transformer import ParallelTransformer
from labs_helpers.tensor_parallel.sharded_gradients import sum_partial_gradients
from labs_helpers.tensor_parallel.state import split_dims
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.attentions import ATTENTIONS

OURS, THEIRS, ALONE = "ours", "parallelize_module", "compute alone"


@dataclass(frozen=True)
class Candidate:
    """One way to run the step.

    library: OURS, THEIRS, or ALONE, which is ours with groups that send nothing. average: OURS also averages gradients
    over the data-parallel ranks, and starts during the backward pass. compiled: block by block, or the whole model if
    `whole`, which takes ten times as long to compile.
    """

    library: str
    attention: str = "sdpa"
    compiled: bool = False
    sequence_parallel: bool = False
    average: bool = False
    whole: bool = False


def candidates(dp: int, tp: int, attentions: list[str], manners: list[bool]) -> list[Candidate]:
    """Return the candidates of one layout. attentions: names; manners: whether compiled.

    Our layers compile both block by block and as a whole, because some versions of PyTorch can compile the model of
    `parallelize_module` only as a whole.
    """
    found = []
    for attention in attentions:
        for compiled in manners:
            found.append(Candidate(OURS, attention, compiled))
            found += [Candidate(OURS, attention, compiled, whole=True)] if compiled and tp > 1 else []
            found += [Candidate(THEIRS, attention, compiled)] if tp > 1 else []
    for compiled in manners:
        if tp > 1:
            found += [Candidate(library, attentions[0], compiled, True) for library in (OURS, THEIRS)]
            found.append(Candidate(ALONE, attentions[0], compiled))
        if dp > 1:
            found.append(Candidate(OURS, attentions[0], compiled, average=True))
    return found


class Setting:
    """One layout of GPUs (or CPU ranks) with its groups, parameters and batch. Every rank creates it.

    full: the whole model's parameters on this rank's device; tokens, targets: (batch, length) for all ranks together.
    """

    def __init__(
        self,
        dp: int,
        tp: int,
        config: TransformerConfig,
        full: Mapping[str, Tensor],
        tokens: Tensor,
        targets: Tensor,
    ) -> None:
        first = next(iter(full.values()))
        self.dp, self.tp, self.config, self.full = dp, tp, config, full
        self.device, self.dtype = first.device, first.dtype
        self.mesh = init_device_mesh(self.device.type, (dp, tp), mesh_dim_names=("dp", "tp"))
        self.tp_group, self.dp_group = self.mesh["tp"].get_group(), self.mesh["dp"].get_group()
        mine = slice(*(len(tokens) * (self.mesh["dp"].get_local_rank() + more) // dp for more in (0, 1)))
        self.tokens, self.targets = tokens[mine].contiguous(), targets[mine].contiguous()


class Contestant:
    """A candidate's model in a setting.

    `step()` computes forward and backward pass and any gradient average, returns the loss of this rank's sequences, and
    keeps the gradients.
    """

    def __init__(self, setting: Setting, candidate: Candidate) -> None:
        self.setting, self.candidate = setting, candidate
        attention, sequence = ATTENTIONS[candidate.attention], candidate.sequence_parallel
        self.average: GradientAverage | None = None
        self.model: ParallelTransformer | DTensorTransformer
        if candidate.library == THEIRS:
            self.model = DTensorTransformer(setting.config, setting.full, setting.mesh["tp"], attention, sequence)
        else:
            spoken = TorchCommunication(setting.tp_group)
            silent = SilentCommunication(spoken.rank, spoken.size)
            self.group: Communication = silent if candidate.library == ALONE else spoken
            self.model = ParallelTransformer.from_full(
                setting.config, setting.full, self.group, attention, sequence_parallel=sequence
            )
            if candidate.average:
                self.average = GradientAverage(self.model.parameters(), TorchCommunication(setting.dp_group))
        if candidate.compiled:
            for part in [self.model] if candidate.whole else self.model.blocks:  # equal blocks share one compiled graph
                part.compile(dynamic=False)

    def step(self) -> Tensor:
        self.model.zero_grad()
        if isinstance(self.model, DTensorTransformer):
            return self.model.run(self.setting.tokens, self.setting.targets)
        loss = self.model.loss(self.setting.tokens, self.setting.targets)
        loss.backward()
        if self.average is not None:
            self.average.finish()
        if self.candidate.sequence_parallel:
            sum_partial_gradients(self.model, self.group)
        return loss.detach()

    def checked(self) -> dict[str, Any]:
        """Run an untimed step and return the values on which all candidates have to agree.

        These are loss and gradient norm, as means over the data-parallel ranks. For our eager candidates it also
        returns the bytes in their collectives, counted and by formula.
        """
        loss = self.step().float().clone()
        dist.all_reduce(loss, group=self.setting.dp_group)
        found: dict[str, Any] = {"loss": loss.item() / self.setting.dp, "gradient_norm": self._norm()}
        ours = self.candidate.library == OURS  # compute alone sends nothing that could be counted
        if isinstance(self.model, ParallelTransformer) and ours and not self.candidate.compiled:
            self.model.group.reset()
            self.step()
            found["tp_payload"] = sum(self.model.group.payload.values())
            found["tp_payload_by_formula"] = sum(
                row.calls * row.payload for row in self._traffic() if row.group == "tp"
            )
        if self.setting.device.type == "cuda":
            found["step_bytes"] = peak_memory(lambda _: self.step(), self.setting.tokens)[1]
        return found

    def _norm(self) -> float:
        squares = torch.zeros(2, dtype=torch.float64, device=self.setting.device)  # of whole gradients, of split ones
        dims = split_dims(self.model)
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                mine, part = local(parameter.grad)
                squares[int(part or dims[name] is not None)] += mine.double().square().sum()
        whole, parts = squares.unbind()
        dist.all_reduce(parts, group=self.setting.tp_group)
        norm = (whole + parts).sqrt()
        dist.all_reduce(norm, group=self.setting.dp_group)
        return float(norm.item() / self.setting.dp)

    def _traffic(self) -> list[traffic.Sent]:
        sequences, length = self.setting.tokens.shape
        how: dict[str, Any] = {"sequence_parallel": self.candidate.sequence_parallel}
        return traffic.step_traffic(
            self.setting.config, sequences, length, self.setting.tp, self.setting.dp, self.setting.dtype.itemsize, **how
        )
