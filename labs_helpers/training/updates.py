"""Average the gradients over the data-parallel ranks, and update the parameters: on every rank all of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from labs_helpers.communication.gradient_average import GradientAverage
from labs_helpers.pipeline.schedule import BACKWARD, WEIGHT, Action
from labs_helpers.tensor_parallel.sharded_gradients import Gradient, sum_partial_gradients
from labs_helpers.training.model_part import ModelPart
from labs_helpers.transformer.train import adamw

MOMENTS = ("exp_avg", "exp_avg_sq")  # AdamW's moments


class Update(ABC):
    """AdamW for one rank's part of the model, which `dp` ranks train on different data.

    In a step: the computations, each within `around`; `finish`; the sum over the copies of a tied weight, in
    `tied_gradient`; clipping, in `gradients`; `apply`. buckets: how many all-reduces or reduce-scatters a step makes.
    """

    buckets: int

    def __init__(self, part: ModelPart, lr: float) -> None:
        self.part, self.dp = part, part.mesh["dp"]
        self.optimizer = adamw(part.model, lr)

    def around(self, action: Action) -> AbstractContextManager[None]:
        """Return the context of a pipeline's computation."""
        return nullcontext()

    @abstractmethod
    def clear(self) -> None:
        """Set all gradients to 0."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until the gradients are the means over all data. Every rank calls this."""

    @property
    @abstractmethod
    def gradients(self) -> list[Gradient]:
        """The gradients from which this rank updates parameters."""

    @property
    @abstractmethod
    def tied_gradient(self) -> Tensor | None:
        """The gradient of a weight with a copy on another rank of the pipeline, or None."""

    @abstractmethod
    def apply(self) -> None:
        """Update the parameters. Every rank calls this."""

    @abstractmethod
    def moments(self, name: str) -> dict[str, Tensor]:
        """Return one of MOMENTS by parameter name; every data-parallel rank calls this."""

    @abstractmethod
    def load_moments(self, name: str, whole: Mapping[str, Tensor]) -> None:
        """Load the opposite of `moments`."""

    def state_of(self, p: Tensor) -> dict[str, Tensor]:
        """Return the optimizer's state of a tensor that it updates; create it if it does not exist yet."""
        if not self.optimizer.state[p]:
            zeros = {name: torch.zeros_like(p.detach()) for name in MOMENTS}
            self.optimizer.state[p] = {"step": torch.tensor(0.0), **zeros}
        return self.optimizer.state[p]

    def set_step(self, step: int) -> None:
        """Set the number of steps that the moments have seen."""
        for state in self.optimizer.state.values():
            state["step"] = torch.tensor(float(step))


class ReplicatedUpdate(Update):
    """Every data-parallel rank updates all parameters of its part, from the same mean gradients.

    ends: stage → its last backward computation in a step. A stage's gradients start to travel there, while the rank
    still works on other stages or waits. order: of `ends`.
    """

    def __init__(self, part: ModelPart, lr: float, bucket_bytes: int, order: tuple[Action, ...]) -> None:
        super().__init__(part, lr)
        self.ends = {action.stage: action for action in order if action.kind in (BACKWARD, WEIGHT)}
        self.averages: dict[int, GradientAverage] = {}
        placed: set[nn.Parameter] = set()
        for number, stage in part.stages.items():  # a tied weight on one rank belongs to the first stage, where it ends
            mine = [p for p in stage.parameters() if p not in placed]
            placed.update(mine)
            self.averages[number] = GradientAverage(mine, self.dp, bucket_bytes)
        self.buckets = sum(len(average.buckets) for average in self.averages.values())

    @contextmanager
    def around(self, action: Action) -> Iterator[None]:
        last = self.ends.get(action.stage) == action
        with ExitStack() as adding:
            for number, average in self.averages.items():
                if not (last and action.kind == BACKWARD and number == action.stage):
                    adding.enter_context(average.accumulate())
            yield
        if last and action.kind == WEIGHT:
            self.averages[action.stage].start()

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)  # the gradients stay in their buckets

    def finish(self) -> None:
        for average in self.averages.values():
            average.finish()
        if self.part.sequence_parallel:
            sum_partial_gradients(self.part.model, self.part.mesh["tp"])

    @property
    def gradients(self) -> list[Gradient]:
        return [self.part.gradient(name, p.grad) for name, p in self.part.parameters.items() if p.grad is not None]

    @property
    def tied_gradient(self) -> Tensor | None:
        return None if self.part.tied is None else self.part.parameters[self.part.tied].grad

    def apply(self) -> None:
        self.optimizer.step()

    def moments(self, name: str) -> dict[str, Tensor]:
        return {each: self.state_of(p)[name] for each, p in self.part.parameters.items()}

    def load_moments(self, name: str, whole: Mapping[str, Tensor]) -> None:
        for each, tensor in self.moments(name).items():
            tensor.copy_(whole[each])
