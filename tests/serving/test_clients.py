"""Test clients that leave, are killed, or do not read; and that the server's end leaves nothing behind."""

import json
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from labs_helpers.serving import http_connection, listen
from labs_helpers.serving.server import Completions, Limits
from tests.processes import eventually, started
from tests.serving.fake_engine import FakeEngine, text_of
from tests.serving.served import is_refused, served

HEAD = b"""POST /v1/completions HTTP/1.1\r
Host: x\r
Connection: close\r
Content-Type: application/json\r
Content-Length: %d\r
\r
"""
END = b"\r\n0\r\n\r\n"  # of a body in chunks
BIG = 100_000  # letters per token: a few of them fill the buffers of a connection


def connect(server, max_tokens=20, stream=True, receive_buffer=None, request=None):
    """Send a request over a plain socket, and return the socket."""
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect((server.host, int(server.port)))
    body = json.dumps({"model": "bytes", "prompt": "x", "max_tokens": max_tokens, "stream": stream}).encode()
    client.sendall(HEAD % len(body) + body if request is None else request)
    return client


def read_all(client):
    with client, client.makefile("rb") as file:
        return file.read()


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_is_cancelled_and_others_go_on(stream):
    engine = FakeEngine(paced=True)
    with served(engine) as server:
        other = server.complete(max_tokens=3, stream=True)
        with connect(server, stream=stream):
            assert eventually(lambda: len(engine.prompts) == 2)
            engine.allow(1)
            assert next(other).choices[0].text == "a"
        assert eventually(lambda: engine.cancelled == [1])
        engine.allow()
        assert "".join(piece.choices[0].text for piece in other) == "bc"
        assert eventually(lambda: server.metric('requests_total{result="disconnected"}') == 1)


def test_a_client_that_leaves_while_it_waits_in_the_queue():
    engine = FakeEngine(slots=1, paced=True)
    with served(engine) as server:
        first = server.complete(max_tokens=2, stream=True)
        engine.allow(1)
        next(first)
        second = server.complete(stream=True)
        assert list(engine.waiting) == [1]
        second.close()
        assert eventually(lambda: engine.cancelled == [1]) and not engine.waiting
        engine.allow()
        assert "".join(piece.choices[0].text for piece in first) == "b"


def test_a_client_that_leaves_before_its_body_is_complete(server):
    before = server.metric('requests_total{result="disconnected"}')
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(HEAD % 99 + b"{")
        assert eventually(lambda: server.metric("open_requests") == 1)
    assert eventually(lambda: server.metric('requests_total{result="disconnected"}') == before + 1)
    assert server.metric("open_requests") == 0


READER = """
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key="none")
for piece in client.completions.create(model="bytes", prompt="x", max_tokens=2000, stream=True):
    print(piece.choices[0].text, flush=True)
"""


def test_a_client_that_is_killed_in_mid_stream_is_cancelled():
    engine = FakeEngine(paced=True)
    with served(engine) as server:
        with started([sys.executable, "-c", READER, f"{server.url}/v1"], stdout=-1) as process:
            assert eventually(lambda: engine.waiting)
            engine.allow(1)
            assert process.stdout.readline() == b"a\n"
            process.kill()
        assert eventually(lambda: engine.cancelled == [0])
        engine.allow()
        assert server.complete().choices[0].text == "abcde"


def test_a_slow_reader_holds_up_nobody_and_gets_its_whole_text():
    engine = FakeEngine(piece=BIG)
    with served(engine) as server:
        slow = connect(server, max_tokens=200, receive_buffer=4096)
        assert eventually(lambda: engine.finished == [0])  # although its client has not read a byte
        assert server.complete(max_tokens=1).choices[0].text == "a" * BIG
        assert server.metric("open_requests") == 1
        events = [line for line in read_all(slow).split(b"\n") if line.startswith(b"data: {")]
    text = "".join(json.loads(event.removeprefix(b"data: "))["choices"][0]["text"] for event in events)
    assert text == "".join(letter * BIG for letter in text_of(200)) and len(events) < 200


def post(body, headers=b""):
    """The bytes of a request that leaves the connection open."""
    body = json.dumps(GOOD | body).encode()
    return HEAD.replace(b"Connection: close", headers or b"Accept: */*") % len(body) + body


GOOD = {"model": "bytes", "prompt": "x"}
UNREAD = {
    "a stream": post({"max_tokens": 200, "stream": True}),
    "a client with another address": post({"max_tokens": 200, "stream": True}, b"X-Forwarded-For: 192.0.2.1"),
    "long errors": 10 * post({90_000 * "é": 1}),
    "metrics": 100_000 * b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("request_", UNREAD.values(), ids=UNREAD)
def test_a_client_that_reads_nothing_is_given_up(request_):
    with served(FakeEngine(piece=BIG), Limits(stalled_s=0.05)) as server:
        client = connect(server, receive_buffer=4096, request=request_)
        with client, pytest.raises(ConnectionError):
            while True:
                client.send(b"X" * 1000)
        stalled = server.metric('requests_total{result="stalled"}')
        assert server.metric("open_requests") == 0 and stalled == (b"GET" not in request_)


@pytest.mark.parametrize("beginning", [b"", b"GET /health HTTP/1.1\r\nHo"])
def test_a_client_that_sends_no_request_is_given_up(beginning, server, monkeypatch):
    monkeypatch.setattr(http_connection, "HEAD_S", 0.05)
    assert read_all(connect(server, request=beginning)) == b""


def test_a_body_without_an_end_is_given_up_after_its_refusal(server, monkeypatch):
    monkeypatch.setattr(http_connection, "HEAD_S", 0.05)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(server, request=head) as client, pytest.raises(ConnectionError):
        assert client.recv(20).startswith(b"HTTP/1.1 415 ")
        while True:
            client.send(b"1\r\n1\r\n")


def test_more_connections_than_there_are_files_for_are_refused(monkeypatch):
    monkeypatch.setattr(http_connection, "MOST", 2)
    with served() as server, connect(server, request=b""), connect(server, request=b""):
        refused = read_all(connect(server, request=b""))
        assert refused.startswith(b"HTTP/1.1 503 ") and b"The server has 2 connections, which is its limit." in refused


def test_what_is_no_http_gets_an_error_of_the_api(server):
    head, body = read_all(connect(server, request=b"\x16\x03\x01\r\n\r\n")).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and json.loads(body)["error"]["type"] == "invalid_request_error"


class Stopping:
    """A server whose end begins in another thread, so that a test can watch it."""

    def __init__(self, engine, **options):
        self._begin, self._context = threading.Event(), served(engine, **options)
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self):
        ready = threading.Event()

        def run():
            with self._context as self.server:
                ready.set()
                self._begin.wait()

        self._ended = self._pool.submit(run)
        assert eventually(lambda: ready.is_set() or self._ended.done())
        return self

    def begin(self):
        self._begin.set()
        assert eventually(lambda: self.server.app.stopping)

    def __exit__(self, *_):
        self._begin.set()
        self._pool.shutdown()
        self._ended.result()


def test_at_the_end_a_stream_may_finish_within_the_grace_time():
    engine = FakeEngine(paced=True)
    with Stopping(engine, grace_s=1000.0) as stopping:
        client = connect(stopping.server, max_tokens=3)
        assert eventually(lambda: engine.waiting)
        stopping.begin()
        assert eventually(lambda: is_refused(int(stopping.server.port)))
        engine.allow()
        assert read_all(client).endswith(b"data: [DONE]\n\n" + END)
    assert engine.finished == [0]


@pytest.mark.parametrize("stream", [True, False])
def test_after_the_grace_time_a_request_ends_with_an_error(stream):
    engine = FakeEngine(paced=True)
    with Stopping(engine, grace_s=0.05) as stopping:
        client = connect(stopping.server, stream=stream)
        assert eventually(lambda: engine.waiting)
        stopping.begin()
        received = read_all(client)
        assert received.startswith(b"HTTP/1.1 200 OK" if stream else b"HTTP/1.1 503 Service Unavailable")
        assert b'"message":"The server is shutting down.","type":"server_error"' in received
        assert b"[DONE]" not in received
    assert engine.cancelled == [0]


def test_a_body_that_was_on_its_way_is_still_answered():
    with Stopping(FakeEngine(), grace_s=1000.0) as stopping:
        with socket.create_connection((stopping.server.host, stopping.server.port)) as client:
            client.sendall(HEAD % 2 + b"{")
            assert eventually(lambda: stopping.server.app.open_requests)
            stopping.begin()
            client.sendall(b"}")
            assert client.recv(10_000).startswith(b"HTTP/1.1 400 ")


def test_at_the_end_a_client_that_does_not_read_is_cut_off(monkeypatch):
    monkeypatch.setattr(listen, "LAST_WORDS_S", 0.05)
    engine = FakeEngine(piece=BIG)
    with Stopping(engine, grace_s=0.05) as stopping:
        client = connect(stopping.server, max_tokens=200, receive_buffer=4096)
        assert eventually(lambda: engine.finished == [0])
        stopping.begin()
    assert not read_all(client).endswith(END)


def test_a_port_that_is_taken_is_an_error_that_names_it():
    with listen.bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use") as raised, listen.running(
            Completions(FakeEngine()), port
        ):  # fmt: skip
            raise AssertionError
        assert raised.value.filename == f"127.0.0.1:{port}"
