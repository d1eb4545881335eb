"""The request that a non-blocking collective returns."""

from __future__ import annotations

from labs_helpers.practice.request import PracticeRequest


class GroupRequest(PracticeRequest):
    """A request whose result is in its buffer after Wait, or after a Test that returns True, never before."""

    def __getattr__(self, name: str):
        raise AttributeError(f"requests of practice ranks know Wait, Waitall and Test, not {name!r}")
