"""A connection of uvicorn's that waits for a request for a limited time, and answers broken HTTP as the API does."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from labs_helpers.serving.answers import as_json
from labs_helpers.serving.protocol import ApiError

HEAD_S = 30.0  # from the beginning of a connection, or the end of a response, to the head of the next request


class Connection(H11Protocol):
    """uvicorn closes a connection that sends nothing after a response. This one also ends those that send nothing at
    all, a head in small pieces, or a body that has no end after its refusal."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def on_response_complete(self) -> None:
        self._expect_head()  # first, since the next request may begin at once
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        body = as_json(ApiError(400, msg).body())
        lines = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        head = h11.Response(status_code=400, headers=list(lines.items()), reason=b"Bad Request")
        try:
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        except h11.LocalProtocolError:  # an answer to this request has begun
            pass
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
