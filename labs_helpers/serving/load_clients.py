"""Clients that send requests to a server at given times, and note when its outputs arrive.

They read HTTP themselves: a client library would take more of the CPU than a small model's server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from labs_helpers.serving.request import SamplingParameters


@dataclass(frozen=True)
class Arrival:
    """A request that is due `at` seconds after the beginning."""

    at: float
    prompt: tuple[int, ...]
    how: SamplingParameters


@dataclass
class Observed:
    """A request's fate. times: of its outputs, in seconds after the beginning; tokens: of its whole answer."""

    due: float
    times: list[float] = field(default_factory=list)
    tokens: int = 0
    error: str = ""


def over_http(url: str, model: str, work: Sequence[Arrival]) -> list[Observed]:
    """Send the requests to a server, 'http://host:port' and perhaps a path, which is ignored; read their streams."""

    async def everyone() -> list[Observed]:
        began = time.perf_counter()
        return await asyncio.gather(*(_send(url, model, arrival, began) for arrival in work))

    return asyncio.run(everyone())


async def _send(url: str, model: str, arrival: Arrival, began: float) -> Observed:
    observed = Observed(arrival.at)
    await asyncio.sleep(arrival.at - (time.perf_counter() - began))
    address, how = urlsplit(url), arrival.how
    body = {"model": model, "prompt": arrival.prompt, "max_tokens": how.max_tokens, "temperature": how.temperature}
    body |= {"seed": how.seed, "stream": True, "stream_options": {"include_usage": True}}
    try:
        reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        observed.error = f"{url}: {'connection refused' if refused else error.strerror or error}"
        return observed
    try:
        text = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        writer.write(head.encode() + text)
        async for event in _events(reader):
            if "error" in event:
                observed.error = event["error"]["message"]
            elif event["choices"]:
                observed.times.append(time.perf_counter() - began)
            else:
                observed.tokens = event["usage"]["completion_tokens"]
        if not observed.tokens:
            observed.error = observed.error or "the stream ended early"
    except (OSError, EOFError) as error:
        observed.error = f"{type(error).__name__}: {error}"
    except (ValueError, KeyError, TypeError, asyncio.LimitOverrunError):
        observed.error = f"{url} does not answer as the OpenAI API does"
    finally:
        writer.close()
    return observed


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON of the events of an HTTP/1.1 answer; that of the body if its status is not 200."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ", 2)[1] != b"200":
        yield json.loads(await reader.read())
        return
    pending = b""
    while size := int(await reader.readline(), 16):  # of a chunk
        pending += (await reader.readexactly(size + 2))[:-2]
        *events, pending = pending.split(b"\n\n")
        for event in events:
            if event != b"data: [DONE]":
                yield json.loads(event.removeprefix(b"data: "))
