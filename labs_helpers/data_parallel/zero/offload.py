"""Copies between the CPU's memory and a GPU's that run beside the computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class CopyStream:
    """On a GPU a stream of its own for copies: on the stream that computes, each would wait for the layers queued
    before it, and hold up those behind it. Elsewhere nothing."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @contextmanager
    def queue(self) -> Iterator[None]:
        """What is queued inside runs after what the current stream has so far: memory that was freed there is free
        here."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield

    def wait(self) -> None:
        """What the current stream is given from now on runs after what was queued."""
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
