"""Run a schedule: each rank works through its list, on its stages, with messages to its neighbors.

Every rank knows the whole schedule, so the order of messages follows from it and never from the timing of a rank.
Sends run beside the computations. A computation waits for the message that it uses, whose receive starts before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from labs_helpers.communication.interface import Communication, Request
from labs_helpers.pipeline.messages import complete, message_for
from labs_helpers.pipeline.schedule import (
    BACKWARD,
    COMPUTE,
    FORWARD,
    FREE,
    INPUT,
    RECEIVE_GRADIENT,
    RECEIVE_INPUT,
    SEND_GRADIENT,
    SEND_OUTPUT,
    WEIGHT,
    Action,
    Schedule,
)
from labs_helpers.pipeline.split_backward import WeightGradients, add_weight_gradients
from labs_helpers.pipeline.validate import channels, check

Loss = Callable[[Tensor, Tensor], Tensor]
Watch = Callable[[Action], AbstractContextManager[None]]


class Pipeline:
    """One rank's part of a pipeline over the ranks of `group`.

            pipeline = Pipeline(one_f_one_b(4, 8), {group.rank: stage}, cross_entropy, group, (2, 128, 64))
            losses = pipeline.run(inputs, targets)

    schedule: the same on every rank; it is completed with messages and checked. stages: the modules of this rank's
    stages, by number; the first maps an input, the others an activation, to an activation, the last to what `loss`
    compares with a target. loss: (output, target) → a mean, a tensor of one element. shape: of every activation
    between stages, in `dtype`, for one micro-batch. later: where the stages' layers leave the gradients of their
    weights (`leave_weights_for_later`); schedules with I and W need it, and with it B adds these gradients in place.

    Raises InvalidSchedule; ValueError for stages that do not belong to this rank, a group of another size, or I and W
    without `later`.
    """

    def __init__(
        self,
        schedule: Schedule,
        stages: Mapping[int, nn.Module],
        loss: Loss,
        group: Communication,
        shape: Sequence[int],
        dtype: torch.dtype = torch.float32,
        later: WeightGradients | None = None,
    ) -> None:
        if group.size != schedule.ranks:
            raise ValueError(f"the schedule is for {schedule.ranks} ranks, and the group has {group.size}")
        self.schedule = complete(schedule)
        check(self.schedule)
        if sorted(stages) != (held := schedule.held_by(group.rank)):
            raise ValueError(f"rank {group.rank} holds the stages {held}, but was given {sorted(stages)}")
        if schedule.splits_backward and later is None:
            raise ValueError(f"{schedule.name} splits backward passes: pass later=leave_weights_for_later(stages)")
        self.stages, self.loss, self.later = dict(stages), loss, later
        self.group = group
        group.open_channels(sorted(channels(self.schedule)))
        self.shape, self.dtype = tuple(shape), dtype
        self.watch: Watch = lambda action: nullcontext()
        self._do = {
            FORWARD: self._forward, BACKWARD: self._backward, INPUT: self._input, WEIGHT: self._weight,
            SEND_OUTPUT: self._send_output, SEND_GRADIENT: self._send_gradient, RECEIVE_INPUT: self._receive,
            RECEIVE_GRADIENT: self._receive, FREE: self._free,
        }  # fmt: skip

    def run(
        self, inputs: Sequence[Tensor] | None = None, targets: Sequence[Tensor] | None = None, scale: float = 1.0
    ) -> list[Tensor]:
        """Run all micro-batches; return their losses on the rank of the last stage, and [] on the others.

        inputs: one tensor per micro-batch, read by the first stage's rank. targets: read by the last stage's rank.
        Gradients are added to .grad: those of the mean of the losses, times `scale` (see `loss_scale.LossScale`).
        ValueError for another number of micro-batches.
        """
        self._begin(inputs, targets, scale)
        with torch.set_grad_enabled(self.schedule.trains):
            for action in self.schedule.orders[self.group.rank]:
                if action.kind in COMPUTE:
                    self._await(action)
                    with self.watch(action):
                        self._do[action.kind](action)
                else:
                    self._do[action.kind](action)
        self._finish_sends()
        return [loss for _, loss in sorted(self.losses.items())]

    def _begin(self, inputs: Sequence[Tensor] | None, targets: Sequence[Tensor] | None, scale: float) -> None:
        self.inputs = self._given("inputs", inputs, 0)
        self.targets = self._given("targets", targets, self.schedule.stages - 1)
        self.factor = scale / self.schedule.micro_batches
        self.x: dict[tuple[int, int], Tensor] = {}  # (stage, micro-batch) → the input of the stage
        self.y: dict[tuple[int, int], Tensor] = {}  # … its output, or the loss
        self.dx: dict[tuple[int, int], Tensor] = {}  # … the gradient of its input
        self.kept: dict[tuple[int, int], list[tuple[Tensor, Tensor, Tensor]]] = {}  # … the products that I left for W
        self.losses: dict[int, Tensor] = {}
        self.arriving: dict[Action, tuple[Tensor, Request]] = {}
        self.leaving: list[tuple[Tensor, Request]] = []  # a message's tensor stays alive until it has left

    def _finish_sends(self) -> None:
        for _, request in self.leaving:
            request.wait()
        self.leaving.clear()

    def _given(self, name: str, values: Sequence[Tensor] | None, stage: int) -> Sequence[Tensor]:
        if stage not in self.stages:
            return ()
        if values is None or len(values) != self.schedule.micro_batches:
            there = "no" if values is None else len(values)
            raise ValueError(f"{there} {name}; the schedule has {self.schedule.micro_batches} micro-batches")
        return values

    def _await(self, action: Action) -> None:
        """Wait for the message that a computation uses; on a GPU only the current stream waits."""
        message = message_for(self.schedule, action)
        if message is not None:
            tensor, request = self.arriving.pop(message)
            request.wait()
            self._place(message, tensor)

    def _place(self, message: Action, tensor: Tensor) -> None:
        """Keep what arrived as a stage's input, or as the gradient of the next stage's input."""
        if message.kind == RECEIVE_INPUT:
            self.x[message.stage, message.micro] = tensor
        else:
            self.dx[message.stage + 1, message.micro] = tensor

    def _forward(self, action: Action) -> None:
        _, stage, micro = action
        if stage == 0:
            x = self.inputs[micro]
        else:
            key = stage, micro
            x = self.x.pop(key) if key in self.x else self.y[stage - 1, micro].detach()
            if self.schedule.trains:
                x.requires_grad_()
        y = self.stages[stage](x)
        if stage == self.schedule.stages - 1:
            loss = self.loss(y, self.targets[micro])
            self.losses[micro] = loss.detach()
            y = loss * self.factor
        self.x[stage, micro], self.y[stage, micro] = x, y

    def _backward(self, action: Action) -> None:
        self._input(action)
        if self.later is not None:
            self._weight(action)

    def _input(self, action: Action) -> None:
        _, stage, micro = action
        y, dy = self.y[stage, micro], self.dx.pop((stage + 1, micro), None)
        torch.autograd.backward(y, dy)
        x = self.x.pop((stage, micro))
        if x.grad is not None:
            self.dx[stage, micro] = x.grad
        self.y[stage, micro] = y.detach()  # without the graph, which has been used
        if self.later is not None:
            self.kept[stage, micro] = self.later.take()

    def _weight(self, action: Action) -> None:
        add_weight_gradients(self.kept.pop((action.stage, action.micro)))

    def _free(self, action: Action) -> None:
        del self.y[action.stage, action.micro]
        self.x.pop((action.stage, action.micro), None)

    def _send_output(self, action: Action) -> None:
        y = self.y[action.stage, action.micro].detach()
        if (y.shape, y.dtype) != (self.shape, self.dtype):
            returned = f"stage {action.stage} returned {tuple(y.shape)} in {y.dtype}"
            raise ValueError(f"{returned}, but activations between stages have {self.shape} in {self.dtype}")
        self._send(y, action.stage + 1)

    def _send_gradient(self, action: Action) -> None:
        self._send(self.dx.pop((action.stage, action.micro)), action.stage - 1)

    def _send(self, tensor: Tensor, stage: int) -> None:
        self.leaving = [(sent, request) for sent, request in self.leaving if not request.poll()]
        to = self.schedule.rank_of[stage]
        self.leaving.append((tensor, self.group.start_send(tensor, to)))

    def _receive(self, action: Action) -> None:
        self._receive_into(self._empty(), action)

    def _empty(self) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device=self.group.device)

    def _receive_into(self, tensor: Tensor, action: Action) -> None:
        source = self.schedule.rank_of[action.stage + (-1 if action.kind == RECEIVE_INPUT else 1)]
        self.arriving[action] = tensor, self.group.start_receive(tensor, source)
