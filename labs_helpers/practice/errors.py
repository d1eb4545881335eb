"""The errors of practice ranks."""

from __future__ import annotations


class PracticeError(RuntimeError):
    """An error of a run. `.practice` holds what happened before it: messages, unreceived messages, and results so
    far."""

    practice = None


class RankFailed(PracticeError):
    """A rank raised `.error`, which is also the cause of this error; `.rank` says which one. The other ranks were
    ended."""

    def __init__(self, message: str, rank: int, error: BaseException):
        super().__init__(message)
        self.rank, self.error = rank, error


class PracticeTimeout(PracticeError):
    """A rank was still computing at the time limit."""


class Truncated(RuntimeError):
    """A message is longer than the buffer that receives it."""


class SendBufferOverwritten(RuntimeError):
    """A rank changed a buffer that was still being sent."""


class BufferInUse(RuntimeError):
    """Two messages are being received into the same memory at the same time."""
