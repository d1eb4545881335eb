"""Run a synchronous engine in one thread, and hand its outputs to an asyncio event loop.

The event loop's thread sends commands through a queue, and the engine's thread performs them between two steps: no
other thread ever calls the engine. After each step, one callback takes outputs to the event loop. Both threads share
Python's global lock, so an event per token of 64 streams would slow down the engine: a stream gets its first and last
outputs at once, and the others at most every `interval_s`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from labs_helpers.serving.request import Output, SamplingParameters
from labs_helpers.serving.status import QueueFull
from labs_helpers.serving.stream import Stream, joined

INTERVAL_S = 0.01
logger = logging.getLogger(__name__)


class StepEngine(Protocol):
    """What the thread calls of an engine; see `engine.Engine`."""

    def add(self, prompt: Sequence[int], how: SamplingParameters) -> int: ...
    def cancel(self, request: int) -> None: ...
    def step(self) -> list[Output]: ...
    def has_work(self) -> bool: ...
    def statistics(self) -> Any: ...


class EngineStopped(RuntimeError):
    """The engine does no more work: it failed, or its server is shutting down."""


class EngineThread:
    """The thread of one engine. Every method but `stop` belongs to the event loop's thread.

    interval_s: see above; 0 hands out the outputs of every step. statistics: the engine's, after its last step.
    failure: the exception that ended the thread.
    """

    def __init__(self, engine: StepEngine, interval_s: float = INTERVAL_S) -> None:
        self.statistics = engine.statistics()
        self.failure: BaseException | None = None
        self._engine, self._interval_s = engine, interval_s
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)  # a hung step must not keep us
        self._streams: dict[int, Stream] = {}  # by the engine's number of the request; of the engine's thread
        self._numbers: dict[Stream, int] = {}
        self._held: dict[Stream, Output] = {}
        self._told_at: dict[Stream, float] = {}
        self._open: set[Stream] = set()  # of the event loop's thread
        self._stopped = ""  # why, once it has

    def start(self) -> None:
        """Start the thread. Outputs go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self, patience_s: float = 10.0) -> None:
        """Cancel all requests, end the thread, and wait for it. Logs an error if a step takes longer than that."""
        if not self._thread.is_alive():
            return
        self._commands.put(None)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            logger.error("A step of the engine has not finished in %g s; its thread is left behind.", patience_s)

    async def add(self, prompt: Sequence[int], how: SamplingParameters) -> Stream:
        """Give the engine a request. Raises what `Engine.add` raises, or EngineStopped."""
        if self._stopped:
            raise EngineStopped(self._stopped)  # a new one: an exception keeps the frames of every place that raises it
        stream = Stream()
        self._open.add(stream)
        self._commands.put(lambda: self._add(stream, prompt, how))
        try:
            await stream.accepted
        except BaseException:  # refused, or the caller was cancelled while it waited
            self.close(stream)
            raise
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream, whether or not its request has finished: the engine cancels one that runs."""
        if stream in self._open:
            self._open.discard(stream)
            self._commands.put(lambda: self._cancel(stream))

    def fail_all(self, why: str) -> None:
        """End all streams with an EngineStopped, and refuse requests from now on."""
        self._stopped = why
        for stream in self._open:
            stream.fail(EngineStopped(why))

    # What follows runs in the engine's thread.

    def _run(self) -> None:
        try:
            while self._perform_commands():
                for output in self._engine.step():
                    if stream := self._streams.get(output.request):
                        self._held[stream] = joined(self._held.get(stream), output)
                self.statistics = self._engine.statistics()
                self._hand_out()
            why = "The server is shutting down."
        except BaseException as failure:  # SystemExit too: its thread would end without a word
            logger.exception("The engine failed.")
            self.failure = failure
            why = f"The engine failed: {type(failure).__name__}."
        self._tell(self.fail_all, why)
        if not self.failure:
            for number in self._streams:
                self._engine.cancel(number)

    def _hand_out(self) -> None:
        """Take the outputs that are due to the event loop."""
        now = time.monotonic()
        late = now - self._interval_s
        due = [(s, o) for s, o in self._held.items() if o.finished or self._told_at.get(s, late) <= late]
        for stream, _ in due:
            del self._held[stream]
            self._told_at[stream] = now
        if due:
            self._tell(_deliver, due)

    def _perform_commands(self) -> bool:
        """Perform the waiting commands; without work, wait for one. Returns False once the thread has to end."""
        while not (self._commands.empty() and self._engine.has_work()):
            if (command := self._commands.get()) is None:
                return False
            command()
            self.statistics = self._engine.statistics()
        return True

    def _add(self, stream: Stream, prompt: Sequence[int], how: SamplingParameters) -> None:
        try:
            number = self._engine.add(prompt, how)
        except (ValueError, QueueFull) as refusal:
            self._tell(stream.fail, refusal)
            return
        self._streams[number], self._numbers[stream] = stream, number
        self._tell(stream.accept)

    def _cancel(self, stream: Stream) -> None:
        number = self._numbers.pop(stream, None)
        if number is not None:
            del self._streams[number]
            self._held.pop(stream, None)
            self._told_at.pop(stream, None)
            self._engine.cancel(number)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:  # the event loop is closed, and nobody listens any more
            self._commands.put(None)


def _deliver(outputs: list[tuple[Stream, Output]]) -> None:
    for stream, output in outputs:
        stream.put(output)
