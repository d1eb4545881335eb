"""Communication hooks, which average a bucket: the plain mean, or one that sends fewer bytes (`compression`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.communication.interface import Communication, Request

CommunicationHook = Callable[[FlatBucket, Communication], Iterator[Request]]
"""Replace this rank's gradients in `bucket.buffer` by the mean over the ranks. A hook yields the request of each
collective after starting it, and may read the result when it is resumed. Each rank calls it for the same buckets in the
same order."""


def average(bucket: FlatBucket, group: Communication) -> Iterator[Request]:
    """Average the bucket without compression."""
    yield group.start_mean(bucket.buffer)


def send(bucket: FlatBucket, hook: CommunicationHook, group: Communication) -> Iterator[Request]:
    """Collect the parameters' .grad in the bucket, and average it with `hook`."""
    bucket.gather()
    yield from hook(bucket, group)


def name_of(hook: CommunicationHook) -> str:
    """Return a name that is the same on every rank: a function's qualified name, or an object's repr."""
    return getattr(hook, "__qualname__", None) or repr(hook)
