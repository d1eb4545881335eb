"""The outputs of one request on their way from the engine's thread to a reader in an asyncio event loop."""

from __future__ import annotations

import asyncio
import dataclasses

from labs_helpers.serving.request import Output


class Stream:
    """The outputs of one request, in the event loop's thread.

    Outputs that nobody has read yet are joined into one. So a slow reader holds up nobody, and holds no more than the
    text of its request; a fast one gets an output per step.
    """

    def __init__(self) -> None:
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unread: Output | None = None
        self._error: Exception | None = None
        self._finished = False
        self._arrived = asyncio.Event()

    def accept(self) -> None:
        """Tell the caller that the engine has taken the request."""
        if not self.accepted.done():  # the caller may have been cancelled
            self.accepted.set_result(None)

    def put(self, output: Output) -> None:
        self._unread = joined(self._unread, output)
        self._arrived.set()

    def fail(self, error: Exception) -> None:
        """Make the reader's next wait raise the error; it gets the outputs before it first."""
        if not self.accepted.done():
            self.accepted.set_exception(error)
        self._error = error
        self._arrived.set()

    def __aiter__(self) -> Stream:
        """Iterate over the outputs up to the last one, which has a reason to finish."""
        return self

    async def __anext__(self) -> Output:
        while self._unread is None:
            if self._finished:
                raise StopAsyncIteration
            if self._error:
                raise self._error
            self._arrived.clear()
            await self._arrived.wait()
        output, self._unread = self._unread, None
        self._finished = output.finished is not None
        return output


def joined(before: Output | None, output: Output) -> Output:
    """Return one output that reports the same as two in a row."""
    if before is None:
        return output
    return dataclasses.replace(output, tokens=before.tokens + output.tokens, text=before.text + output.text)
