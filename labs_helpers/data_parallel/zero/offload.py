"""Copies between CPU and GPU memory that overlap with compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class CopyStream:
    """A separate stream for copies on a GPU; elsewhere nothing.

    On the compute stream, each copy would wait for the layers queued before it and delay those behind it.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @contextmanager
    def queue(self) -> Iterator[None]:
        """Queue work behind everything on the current stream, so that memory freed there is free here."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield

    def wait(self) -> None:
        """Make later work on the current stream wait for the queued copies."""
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
