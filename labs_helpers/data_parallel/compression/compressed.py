"""The base class of compressions: float32 arithmetic, and error feedback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.communication.interface import Communication, Request

Exchange = Generator[Request, None, tuple[Tensor, Tensor]]


class Compressed(ABC):
    """A `CommunicationHook` that compresses. Use one instance per wrapper, because it keeps state for each bucket.

    error_feedback: add the part of a gradient that a rank did not send to its next gradient (Karimireddy et al., Error
    Feedback Fixes SignSGD, 2019). Everything is then sent eventually; without feedback, entries that are always too
    small are never sent. Feedback takes as much memory as the gradients in float32.
    """

    def __init__(self, error_feedback: bool = True) -> None:
        self.error_feedback = error_feedback
        self.errors: WeakKeyDictionary[FlatBucket, Tensor] = WeakKeyDictionary()

    def __call__(self, bucket: FlatBucket, group: Communication) -> Iterator[Request]:
        if not bucket.buffer.numel():
            return
        gradient = bucket.buffer.to(torch.promote_types(bucket.buffer.dtype, torch.float32))
        if bucket in self.errors:
            gradient = gradient + self.errors[bucket]
        mean, sent = yield from self.exchange(gradient, bucket, group)
        if self.error_feedback:
            # Without this, an overflow, as in the search for a loss scale, would return in every step.
            self.errors[bucket] = (gradient - sent).nan_to_num_(0.0, 0.0, 0.0)
        bucket.buffer.copy_(mean)

    @abstractmethod
    def exchange(self, gradient: Tensor, bucket: FlatBucket, group: Communication) -> Exchange:
        """Yield the requests of the collectives; return (mean, sent), both (n,).

        gradient: (n,), this rank's gradient in float32 or wider; do not change it. mean: the average of the values that
        the ranks sent, with the same bits on all ranks. sent: this rank's values as the other ranks decode them.
        """

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in vars(self).items() if isinstance(v, bool | int | float))
        return f"{type(self).__name__}({settings})"
