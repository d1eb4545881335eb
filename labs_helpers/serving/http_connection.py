"""A connection of uvicorn's within limits: of its time without a request, and of the number of connections."""

from __future__ import annotations

import asyncio
import resource
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from labs_helpers.serving.answers import as_json
from labs_helpers.serving.protocol import ApiError

HEAD_S = 30.0  # from the beginning of a connection, or the end of a response, to the head of the next request
FILES, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
MOST = 10_000 if FILES == resource.RLIM_INFINITY else FILES * 3 // 4  # without a descriptor, asyncio floods the log


class Connection(H11Protocol):
    """uvicorn closes a connection that sends nothing after a response. This one also ends those that send nothing at
    all, a head in small pieces, or a body that has no end after its refusal. It answers broken HTTP, and connections
    beyond MOST, with an error of the API."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()
        if len(self.connections) > MOST:
            self._end(ApiError(503, f"The server has {MOST} connections, which is its limit."))

    def on_response_complete(self) -> None:
        self._expect_head()  # first, since the next request may begin at once
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._end(ApiError(400, msg))

    def _end(self, error: ApiError) -> None:
        """Close the connection, with this error unless a response has begun."""
        if not self.cycle or not self.cycle.response_started or self.cycle.response_complete:
            body = as_json(error.body())
            head = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _expect_head(self) -> None:
        self._stop_clock()
        self._late = self.loop.call_later(HEAD_S, self._close, self.cycle)

    def _stop_clock(self) -> None:
        if self._late:
            self._late.cancel()

    def _close(self, latest: Any) -> None:
        if self.cycle is latest:  # no head has arrived
            self.transport.close()
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)  # of a client that reads nothing
