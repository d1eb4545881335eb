"""The ASGI application of the server: `/v1/completions`, `/v1/models`, `/health` and `/metrics`.

A request to `/v1/completions` runs in the engine's thread. Its handler cancels it when the client disconnects, and
gives up a client that reads nothing for a while. All errors have the shape of the OpenAI API.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from labs_helpers.serving import answers, protocol
from labs_helpers.serving.connection import InTime, read_body, while_connected
from labs_helpers.serving.engine_thread import INTERVAL_S, EngineStopped, EngineThread
from labs_helpers.serving.metrics import CONTENT_TYPE, Metrics, Timing
from labs_helpers.serving.protocol import ApiError, Completion
from labs_helpers.serving.responses import error_response, json_response, refuse
from labs_helpers.serving.status import QueueFull
from labs_helpers.serving.stream import Stream


@dataclass(frozen=True)
class Limits:
    """requests: open at a time; more get status 429, as those for which the engine has no room in its queue. prompt:
    tokens, besides the engine's own limits. body: bytes. upload_s: for a body. stalled_s: without a byte taken by the
    client."""

    requests: int = 512
    prompt: int = 100_000
    body: int = 2**20
    upload_s: float = 30.0
    stalled_s: float = 60.0


class Completions:
    """The application of one engine. model: its name in the API. interval_s: between the outputs of a stream, see
    engine_thread.py. disconnect: ends the connection of a scope's client at once, which ASGI does not offer."""

    def __init__(
        self, engine: Any, model: str = "bytes", limits: Limits | None = None, interval_s: float = INTERVAL_S
    ) -> None:
        self.engine, self.model, self.limits = EngineThread(engine, interval_s), model, limits or Limits()
        self.metrics = Metrics()
        self.disconnect: Callable[[Scope], None] = lambda scope: None
        self.open_requests = 0
        self.stopping = False
        self._tokenizer, self._created = engine.tokenizer, int(time.time())
        routes = Starlette(
            routes=[
                Route("/v1/completions", _Answers(self), methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/v1/models/{model:path}", self._model),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
            ],
            exception_handlers={HTTPException: refuse, ApiError: refuse, Exception: refuse},
            lifespan=self._lifespan,
        )
        self.app: ASGIApp = InTime(routes, self.limits.stalled_s, lambda scope: self.disconnect(scope))

    def stop_streams(self) -> None:
        """End every open request with an error that says that the server is shutting down."""
        self.engine.fail_all("The server is shutting down.")

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.engine.start()
        try:
            yield
        finally:
            self.engine.stop()

    async def _models(self, request: Request) -> Response:
        return json_response(answers.models(self.model, self._created))

    async def _model(self, request: Request) -> Response:
        if (asked := request.path_params["model"]) != self.model:
            raise protocol.no_such_model(asked, self.model)
        return json_response(answers.described(self.model, self._created))

    async def _health(self, request: Request) -> Response:
        if failure := self.engine.failure:
            return json_response({"status": f"the engine failed: {type(failure).__name__}"}, 503)
        return json_response({"status": "stopping"}, 503) if self.stopping else json_response({"status": "ok"})

    async def _metrics(self, request: Request) -> Response:
        text = self.metrics.text(self.open_requests, self.engine.statistics)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to /v1/completions, and count it."""
        result = "500"
        self.open_requests += 1
        try:
            result = await self._answer(scope, receive, send) or "disconnected"
        except ClientDisconnect:
            result = "disconnected"
        except TimeoutError:
            result = "stalled"
            raise
        finally:
            self.open_requests -= 1
            self.metrics.answers[result] += 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> str | None:
        """Return the reason to finish or the status of an error; None if the client disconnected."""
        try:
            if self.stopping:
                raise ApiError(503, "The server is shutting down.")
            if self.open_requests > self.limits.requests:
                raise ApiError(429, f"The server has {self.limits.requests} open requests, which is its limit.")
            asked = self._parse(await read_body(Request(scope, receive), self.limits.body, self.limits.upload_s))
            return await while_connected(receive, self._complete(asked, scope, receive, send))
        except ApiError as error:
            await error_response(error)(scope, receive, send)
            return str(error.status)

    def _parse(self, body: bytes) -> Completion:
        asked = protocol.parse(body, self.model, self._tokenizer.encode, self._tokenizer.vocabulary)
        if (length := len(asked.prompt)) > self.limits.prompt:
            raise protocol.too_long(f"prompt has {length:,} tokens; at most {self.limits.prompt:,} are allowed")
        return asked

    async def _complete(self, asked: Completion, scope: Scope, receive: Receive, send: Send) -> str:
        """Send the whole answer or the stream, and return its reason to finish."""
        timing = Timing(self.metrics)
        try:
            stream = await self.engine.add(asked.prompt, asked.how)
        except ValueError as error:
            raise protocol.too_long(str(error)) from None
        except QueueFull as error:
            raise ApiError(429, str(error)) from None
        except EngineStopped as error:
            raise ApiError(503, str(error)) from None

        try:
            if asked.stream:
                return await _send_events(asked, stream, timing, send)
            body, result = await _whole(asked, stream, timing)
            await json_response(body)(scope, receive, send)
            return result
        finally:
            self.engine.close(stream)


async def _whole(asked: Completion, stream: Stream, timing: Timing) -> tuple[dict[str, Any], str]:
    texts = []
    try:
        async for output in stream:
            timing.add(output)
            texts.append(output.text)
    except EngineStopped as error:
        raise ApiError(503, str(error)) from None
    return answers.answer(asked, "".join(texts), output), str(output.finished)


async def _send_events(asked: Completion, stream: Stream, timing: Timing, send: Send) -> str:
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    try:
        async for output in stream:
            timing.add(output)
            if output.finished:
                break
            if output.text:  # a token may be a part of a character
                await send({"type": "http.response.body", "body": answers.event(asked, output), "more_body": True})
        last, result = answers.last_events(asked, output), str(output.finished)
    except EngineStopped as error:
        last, result = answers.as_event(ApiError(503, str(error)).body()), "503"
    await send({"type": "http.response.body", "body": last, "more_body": False})
    return result


class _Answers:
    """`Completions.answer` as an ASGI application; a Route would give a method the request, and no `receive`."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._completions.answer(scope, receive, send)
