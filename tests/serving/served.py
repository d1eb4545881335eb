"""Start servers on free ports, and check that nothing of them is left."""

import socket
import threading
from contextlib import contextmanager

import httpx
from openai import OpenAI

from labs_helpers.serving import listen
from labs_helpers.serving.server import Completions, Limits
from tests.processes import PATIENCE_S
from tests.serving.fake_engine import FakeEngine


class Served:
    """A running server: its engine, its application, its address, and clients for it."""

    def __init__(self, engine, app, url):
        self.engine, self.app, self.url = engine, app, url
        self.host, self.port = url.removeprefix("http://").split(":")
        self.client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)
        self.http = httpx.Client(base_url=url, timeout=PATIENCE_S)

    def complete(self, prompt="x", max_tokens=5, **options):
        return self.client.completions.create(model="bytes", prompt=prompt, max_tokens=max_tokens, **options)

    def post(self, body, **options):
        return self.http.post("/v1/completions", json=body, **options)

    def metric(self, name):
        """The value of a metric, 0 where it is missing."""
        lines = dict(line.rsplit(" ", 1) for line in self.http.get("/metrics").text.splitlines() if line[0] != "#")
        return float(lines.get(f"serving_{name}", 0))


@contextmanager
def served(engine=None, limits=None, grace_s=5.0, interval_s=0.0):
    """Yield a Served; then the server stops, and its threads and its port are gone."""
    before = set(threading.enumerate())
    engine = engine or FakeEngine()
    completions = Completions(engine, limits=limits or Limits(), interval_s=interval_s)
    engine.wake = lambda: completions.engine._commands.put(lambda: None)
    with listen.running(completions, grace_s=grace_s) as url:
        made = Served(engine, completions, url)
        with made.client, made.http:
            yield made
    assert set(threading.enumerate()) <= before
    left = engine.statistics()
    assert left.running == left.waiting == 0 and len(getattr(engine, "threads", ())) <= 1
    listen.bind("127.0.0.1", int(made.port)).close()  # free again


def is_refused(port):
    """Whether nothing listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False
