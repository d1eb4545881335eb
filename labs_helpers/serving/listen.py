"""Run the server on a port: `serve` until a signal ends it, `running` in a thread beside the caller.

Shutting down takes four steps: no more connections and requests; a grace time in which open requests may finish; an
error event for those that have not; and the end of the connections whose clients do not even read that.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import Scope

from labs_helpers.serving.http_connection import Connection
from labs_helpers.serving.server import Completions

GRACE_S = 5.0
LAST_WORDS_S = 1.0  # for the error events
POLL_S = 0.1  # as uvicorn, which looks for signals in its own handler


class _Server(uvicorn.Server):
    """A uvicorn server of one `Completions`. ready: set once it accepts connections, or has failed. say: told how long
    the open requests may take, when the shutdown begins."""

    def __init__(
        self, completions: Completions, grace_s: float, say: Callable[[str], None] = lambda text: None
    ) -> None:
        options: dict[str, Any] = {"log_config": None, "log_level": "warning", "access_log": False}
        # A client's header must not change its address, which `_disconnect` looks for.
        options |= {"http": Connection, "ws": "none", "lifespan": "on", "proxy_headers": False}
        super().__init__(uvicorn.Config(completions.app, **options))
        self.ready = threading.Event()
        self.completions, self._grace_s, self._say, self._in_a_hurry = completions, grace_s, say, False
        completions.disconnect = self._disconnect

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second SIGINT ends the grace time. uvicorn's own way cancels all tasks, with a traceback for each."""
        if self.should_exit and sig == signal.SIGINT:
            self._in_a_hurry = True
        else:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.completions.stopping = True
        ending = asyncio.create_task(self._end_requests())
        await super().shutdown(sockets)  # returns when all connections are closed
        ending.cancel()

    async def _end_requests(self) -> None:
        if count := self.completions.open_requests:
            with suppress(OSError):  # nobody may read what this process prints
                self._say(f"Open requests: {count}. They may take {self._grace_s:g} s more; Ctrl-C ends them now.")
        until = time.monotonic() + self._grace_s
        while not self._in_a_hurry and (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, POLL_S))
        self.completions.stop_streams()
        await asyncio.sleep(LAST_WORDS_S)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def _disconnect(self, scope: Scope) -> None:
        for connection in list(self.server_state.connections):
            if getattr(connection, "client", None) == scope["client"]:
                connection.transport.abort()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to a port; 0 takes a free one. Raises OSError if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio leaves Nagle's delays on
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier server may linger
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return bound


def url(bound: socket.socket) -> str:
    """Return the address of a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    completions: Completions,
    bound: socket.socket,
    grace_s: float = GRACE_S,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve until SIGINT or SIGTERM, which act after the shutdown; a second SIGINT skips the grace time.

    say: gets a sentence when the shutdown begins and requests are open.
    """
    _run(_Server(completions, grace_s, say), bound)


@contextmanager
def running(completions: Completions, port: int = 0, grace_s: float = GRACE_S) -> Iterator[str]:
    """Serve on 127.0.0.1 in a thread, and yield the address; 0 takes a free port. The block's end shuts it down."""
    with bind("127.0.0.1", port) as bound:
        server = _Server(completions, grace_s)
        thread = threading.Thread(target=_run, args=(server, bound), name="server")
        thread.start()
        try:
            server.ready.wait()
            if not server.started:
                raise RuntimeError("the server did not start; its log says why")
            yield url(bound)
        finally:
            server.should_exit = True
            thread.join()


def _run(server: _Server, bound: socket.socket) -> None:
    try:
        asyncio.run(server.serve([bound]))
    finally:
        server.ready.set()
        server.completions.engine.stop()  # uvicorn skips its shutdown if it could not start
        bound.close()
