"""What happens to a bucket on its way: the plain mean, or something that sends fewer bytes (`compression`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.communication.interface import Communication, Request

CommunicationHook = Callable[[FlatBucket, Communication], Iterator[Request]]
"""Turns this rank's gradients in `bucket.buffer` into the mean, which it writes there. It yields the request of each
collective after having begun it, and may read the result when it goes on. Called on each rank for the same buckets in
the same order."""


def average(bucket: FlatBucket, group: Communication) -> Iterator[Request]:
    """The mean itself."""
    yield group.start_mean(bucket.buffer)


def send(bucket: FlatBucket, hook: CommunicationHook, group: Communication) -> Iterator[Request]:
    """The bucket's whole way, from the parameters' .grad to their mean."""
    bucket.gather()
    yield from hook(bucket, group)


def name_of(hook: CommunicationHook) -> str:
    """The same on every rank for the same hook: a function's name, an object's repr."""
    return getattr(hook, "__qualname__", None) or repr(hook)
