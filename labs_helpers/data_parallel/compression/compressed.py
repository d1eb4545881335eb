"""What all compressions share: float32 arithmetic, and feedback of what was not sent."""

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
    """A `CommunicationHook`. An instance belongs to one wrapper, since it remembers something of each bucket.

    error_feedback: what a rank had and did not send is added to its next gradient (Karimireddy et al., Error Feedback
    Fixes SignSGD, 2019). So nothing is lost, it comes late; without it, what is always too small to be sent never
    counts. It costs memory as large as the gradients, in float32.
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
            # An overflow, as a loss scale that is being sought brings, would otherwise come back in every step.
            self.errors[bucket] = (gradient - sent).nan_to_num_(0.0, 0.0, 0.0)
        bucket.buffer.copy_(mean)

    @abstractmethod
    def exchange(self, gradient: Tensor, bucket: FlatBucket, group: Communication) -> Exchange:
        """gradient: (n,), this rank's, of at least float32, to be left as it is. Yields requests; returns the mean of
        what the ranks sent, the same bits on all of them, and what this rank sent, both (n,) as the others read it."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in vars(self).items() if isinstance(v, bool | int | float))
        return f"{type(self).__name__}({settings})"
