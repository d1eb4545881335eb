"""What can go wrong among practice ranks."""

from __future__ import annotations


class PracticeError(RuntimeError):
    """`.practice` holds what had happened until then: its messages, those not received, the results so far."""

    practice = None


class RankFailed(PracticeError):
    """A rank raised `.error` (also the cause of this one); `.rank` says which. The others were ended."""

    def __init__(self, message: str, rank: int, error: BaseException):
        super().__init__(message)
        self.rank, self.error = rank, error


class PracticeTimeout(PracticeError):
    """A rank was still computing when the time limit passed."""


class Truncated(RuntimeError):
    """A message is longer than the buffer it is received into."""


class SendBufferOverwritten(RuntimeError):
    """A rank changed a buffer that was still being sent."""


class BufferInUse(RuntimeError):
    """Two messages are received into the same memory at the same time."""
