"""Practice ranks: threads of this process that run the same way every time."""

from labs_helpers.practice.deadlock import Deadlock, Standing
from labs_helpers.practice.errors import (
    PracticeError,
    PracticeTimeout,
    RankFailed,
    SendBufferOverwritten,
    Truncated,
)
from labs_helpers.practice.ranks import practice
from labs_helpers.practice.schedule import Message, Practice

__all__ = [
    "Deadlock",
    "Message",
    "Practice",
    "PracticeError",
    "PracticeTimeout",
    "RankFailed",
    "SendBufferOverwritten",
    "Standing",
    "Truncated",
    "practice",
]
