"""The client's side of a request: its body arrives within limits, and its connection may end at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labs_helpers.serving.protocol import ApiError


async def read_body(request: Request, most: int, within_s: float) -> bytes:
    """Return the body of a request with JSON, of at most so many bytes. Raises ApiError, and starlette's
    ClientDisconnect."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        # A web page may send any other type to a server on its reader's machine, without asking.
        raise ApiError(415, "The header Content-Type has to be application/json.")
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise ApiError(413, f"The body has more than {most:,} bytes, which is the limit.")
    except TimeoutError:
        raise ApiError(408, f"The body did not arrive within {within_s:g} s.") from None
    return bytes(body)


class InTime:
    """An application whose answers are given up, with the connection, if the client takes nothing of one for a while.

    disconnect: ends the connection of a scope's client at once.
    """

    def __init__(self, app: ASGIApp, within_s: float, disconnect: Callable[[Scope], None]) -> None:
        self._app, self._within_s, self._disconnect = app, within_s, disconnect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, in_time(send, self._within_s))
        except TimeoutError:
            self._disconnect(scope)
            await asyncio.sleep(0)  # in which the connection is lost


def in_time(send: Send, within_s: float) -> Send:
    """Return `send` with a time limit: TimeoutError if the client takes nothing for so long, the end included."""

    async def send_in_time(message: Message) -> None:
        async with asyncio.timeout(within_s):
            if message.get("body") and not message.get("more_body"):
                await send({**message, "more_body": True})
                message = {"type": "http.response.body"}  # waits until the client has taken what is before it
            await send(message)

    return send_in_time


async def while_connected(receive: Receive, answer: Coroutine[Any, Any, str]) -> str | None:
    """Await the answer; cancel it and return None if the client disconnects before its end."""
    answering = asyncio.create_task(answer)
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = answering.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await answering
    except asyncio.CancelledError:
        if not left:  # the server cancels this request
            raise
        return None
    finally:
        watching.cancel()
