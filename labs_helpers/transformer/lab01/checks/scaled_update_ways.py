"""`scaled_update` in parts, each of which can be done otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

State = tuple[float, int]  # scale, good_steps


def right_change(weight: Tensor, exact: Tensor, gradient: Tensor, scale: float, lr: float) -> None:
    exact -= lr * (gradient.float() / scale)
    weight.copy_(exact)


def right_growth(scale: float, good: int, interval: int) -> State:
    return (2 * scale, 0) if good + 1 == interval else (scale, good + 1)


@dataclass(frozen=True)
class Way:
    """A way to make the update; by default the right one."""

    finite: Callable[[Tensor], bool] = lambda gradient: bool(gradient.isfinite().all())
    looked_at: tuple[int, ...] | None = None  # of the gradients; None: all
    skipped: str = "all"  # where one is not finite; or 'it', 'it and what follows', 'nothing'
    change: Callable[[Tensor, Tensor, Tensor, float, float], None] = right_change
    back_off: Callable[[float, int], State] = lambda scale, good: (scale / 2, 0)
    grow: Callable[[float, int, int], State] = right_growth
    grows_first: bool = False

    def step(
        self,
        weights: Sequence[Tensor],
        master: Sequence[Tensor],
        gradients: Sequence[Tensor],
        state: State,
        lr: float,
        interval: int,
    ) -> State:
        every = range(len(gradients))
        seen = every if self.looked_at is None else [every[index] for index in self.looked_at]
        fine = [index not in seen or self.finite(gradient) for index, gradient in enumerate(gradients)]
        scale = self.grow(*state, interval)[0] if self.grows_first else state[0]
        if all(fine) or self.skipped != "all":
            for weight, exact, gradient, is_fine in zip(weights, master, gradients, fine, strict=True):
                if is_fine or self.skipped == "nothing":
                    self.change(weight, exact, gradient, scale, lr)
                elif self.skipped == "it and what follows":
                    break
        return self.grow(*state, interval) if all(fine) else self.back_off(*state)


RIGHT = Way()
