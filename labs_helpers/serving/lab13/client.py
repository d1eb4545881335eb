"""A client for the course's server that needs only the standard library: it streams, disconnects, and reads metrics."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing

PATIENCE_S = 20.0


def stream(url: str, prompt: str, max_tokens: int, **options: object) -> Iterator[dict]:
    """Yield the events of a streamed answer. The connection closes when the iterator does. RuntimeError: no 200."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    body = {"model": "bytes", "prompt": prompt, "max_tokens": max_tokens, "stream": True} | options
    with closing(connection):
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {json.loads(answer.read())['error']['message']}")
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line.removeprefix(b"data: "))


def metric(url: str, name: str) -> float:
    """Return a metric of the server, 0 if it does not report it."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE_S)
    with closing(connection):
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    return float(dict(line.rsplit(" ", 1) for line in lines if line[:1] != "#").get(f"serving_{name}", 0))


def until(url: str, name: str, value: float) -> float:
    """Return the seconds after which a metric has this value. TimeoutError after PATIENCE_S."""
    began = time.perf_counter()
    while metric(url, name) != value:
        if time.perf_counter() - began > PATIENCE_S:
            raise TimeoutError(f"{name} is {metric(url, name):g}, not {value:g}")
        time.sleep(0.01)
    return time.perf_counter() - began
