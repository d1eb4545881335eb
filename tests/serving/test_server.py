"""Test the server over real sockets, with the real openai client: answers, streams, errors, limits."""

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from labs_helpers.serving import protocol
from labs_helpers.serving.engine_thread import EngineStopped, EngineThread
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.server import Limits
from tests.processes import eventually
from tests.serving.fake_engine import FakeEngine, text_of
from tests.serving.served import served


def test_a_completion_has_its_text_its_reason_to_finish_and_its_usage(server):
    answer = server.complete("héllo", max_tokens=30)
    (choice,) = answer.choices
    assert (choice.text, choice.finish_reason, choice.index) == (text_of(30), "length", 0)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (6, 30, 36)
    assert answer.object == "text_completion" and answer.model == "bytes" and answer.id.startswith("cmpl-")


def test_a_stop_string_ends_the_text_before_it(server):
    for stop in ("d", ["d", "zz"]):
        (choice,) = server.complete(stop=stop).choices
        assert (choice.text, choice.finish_reason) == ("abc", "stop")


def test_the_engine_gets_the_tokens_and_the_options(server):
    server.complete([0, 7, 255], max_tokens=3, temperature=0, top_p=0.5, seed=-3, stop=["q"], extra_body={"top_k": 4})
    number = max(server.engine.prompts)
    how = server.engine.hows[number]
    assert server.engine.prompts[number] == (0, 7, 255)
    assert (how.max_tokens, how.temperature, how.top_p, how.seed, how.stop, how.top_k) == (3, 0, 0.5, -3, ("q",), 4)


def test_a_stream_arrives_piece_by_piece_and_ends_with_its_usage():
    engine = FakeEngine(paced=True)
    with served(engine) as server:
        pieces = server.complete(max_tokens=3, stream=True, stream_options={"include_usage": True})
        for letter in "abc":
            engine.allow(1)
            piece = next(pieces)
            assert piece.choices[0].text == letter and piece.usage is None
            assert piece.choices[0].finish_reason == ("length" if letter == "c" else None)
        last = next(pieces)
        assert last.choices == [] and (last.usage.prompt_tokens, last.usage.completion_tokens) == (1, 3)
        assert list(pieces) == []


def test_the_events_of_a_stream(server):
    with server.http.stream("POST", "/v1/completions", json={"model": "bytes", "prompt": "x", "max_tokens": 2,
                                                             "stream": True}) as answer:  # fmt: skip
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = "".join(answer.iter_text()).split("\n\n")
    *events, done, end = lines
    assert done == "data: [DONE]" and end == "" and all(event.startswith("data: ") for event in events)
    bodies = [json.loads(event.removeprefix("data: ")) for event in events]
    assert "".join(body["choices"][0]["text"] for body in bodies) == "ab" and "usage" not in bodies[0]


def test_after_its_first_event_a_stream_waits_for_the_interval_or_its_end():
    engine = FakeEngine(paced=True)
    with served(engine, interval_s=1000.0) as server:
        pieces = server.complete(max_tokens=50, stream=True)
        engine.allow(1)
        assert next(pieces).choices[0].text == "a"
        engine.allow()
        (rest,) = pieces
        assert rest.choices[0].text == text_of(50)[1:] and rest.choices[0].finish_reason == "length"


def test_the_model_is_listed(server):
    (model,) = server.client.models.list().data
    assert model.id == "bytes" and server.client.models.retrieve("bytes").id == "bytes"
    with pytest.raises(openai.NotFoundError, match="'gpt-5' does not exist; this server has 'bytes'"):
        server.client.models.retrieve("gpt-5")


def test_health_and_metrics(server):
    before = server.metric("generated_tokens_total")
    server.complete(max_tokens=7)
    assert server.http.get("/health").json() == {"status": "ok"}
    assert server.metric("generated_tokens_total") == before + 7
    assert server.metric('requests_total{result="length"}') >= 1
    assert server.metric("open_requests") == 0 and server.metric("engine_steps_total") == server.engine.steps
    assert server.metric('request_seconds_bucket{le="+Inf"}') == server.metric("request_seconds_count") >= 1


@pytest.mark.parametrize(
    "method, path, status, said",
    [
        ("GET", "/v1/completions", 405, "GET /v1/completions: Method Not Allowed."),
        ("POST", "/v1/chat/completions", 404, "POST /v1/chat/completions: Not Found. This server has /v1/completions, "
         "/v1/models, /health, /metrics."),
    ],
)  # fmt: skip
def test_errors_of_the_router_have_the_shape_of_the_api(server, method, path, status, said):
    answer = server.http.request(method, path)
    assert answer.status_code == status and answer.json()["error"]["message"] == said
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


def test_a_prompt_that_is_too_long_is_refused_by_engine_and_server(server):
    with pytest.raises(openai.BadRequestError, match="max_tokens is 3000: too long") as raised:
        server.complete(max_tokens=3000)
    assert raised.value.code == "context_length_exceeded" and raised.value.param == "prompt"
    with served(limits=Limits(prompt=3)) as small:
        with pytest.raises(openai.BadRequestError, match="prompt has 4 tokens; at most 3 are allowed"):
            small.complete("four")
        assert small.complete("one").usage.prompt_tokens == 3


def test_a_body_that_is_too_large_or_of_another_type_is_refused():
    with served(limits=Limits(body=1000)) as server:
        answer = server.post({"model": "bytes", "prompt": "x" * 200_000})
        assert answer.status_code == 413 and "more than 1,000 bytes" in answer.json()["error"]["message"]
        answer = server.http.post("/v1/completions", content=b"{}", headers={"content-type": "text/plain"})
        assert answer.status_code == 415 and "application/json" in answer.json()["error"]["message"]
        assert server.complete("x").choices[0].text == "abcde"


def test_a_body_that_does_not_arrive_is_given_up():
    with served(limits=Limits(upload_s=0.05)) as server, socket.create_connection((server.host, server.port)) as client:
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       b"Content-Length: 99\r\n\r\n{")  # fmt: skip
        assert client.recv(1000).startswith(b"HTTP/1.1 408 ")
        assert server.metric("open_requests") == 0


def test_more_requests_than_may_be_open_get_429_with_retry_after():
    engine = FakeEngine(paced=True)
    with served(engine, Limits(requests=2)) as server:
        streams = [server.complete(max_tokens=2, stream=True) for _ in range(2)]
        with pytest.raises(openai.RateLimitError, match="2 open requests, which is its limit") as raised:
            server.complete()
        assert raised.value.response.headers["retry-after"] == "1"
        engine.allow()
        assert ["".join(piece.choices[0].text for piece in stream) for stream in streams] == ["ab", "ab"]
        assert eventually(lambda: server.metric("open_requests") == 0)
        assert server.complete().choices[0].text == "abcde"


def test_a_full_queue_of_the_engine_gets_429():
    engine = FakeEngine(slots=1, most_waiting=1, paced=True)
    with served(engine) as server:
        streams = [server.complete(max_tokens=2, stream=True)]
        engine.allow(1)
        assert next(streams[0]).choices[0].text == "a"
        streams.append(server.complete(max_tokens=2, stream=True))
        with pytest.raises(openai.RateLimitError, match="1 requests wait, which is the limit") as raised:
            server.complete()
        assert raised.value.response.headers["retry-after"] == "1"
        engine.allow()
        assert ["".join(piece.choices[0].text for piece in stream) for stream in streams] == ["b", "ab"]


def test_two_hundred_streams_at_once_get_their_own_texts():
    with served(FakeEngine(slots=64)) as server:
        barrier = threading.Barrier(200)

        def one(index):
            barrier.wait()
            stream = server.complete("x" * (index % 7 + 1), max_tokens=index + 1, stream=index % 2 == 0)
            return "".join(piece.choices[0].text for piece in stream) if index % 2 == 0 else stream.choices[0].text

        with ThreadPoolExecutor(200) as pool:
            assert list(pool.map(one, range(200))) == [text_of(index + 1) for index in range(200)]
        assert sorted(server.engine.finished) == list(range(200)) and not server.engine.cancelled
        assert server.metric("generated_tokens_total") == 200 * 201 / 2


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_an_engine_that_fails_says_so_to_everybody(error):
    engine = FakeEngine(paced=True, fails_at=2)
    engine.error = error()
    with served(engine) as server:
        streams = [server.complete(stream=True)]
        engine.allow(2)
        with pytest.raises(openai.APIError, match=f"The engine failed: {error.__name__}"):
            list(streams[0])
        with pytest.raises(openai.InternalServerError, match=f"The engine failed: {error.__name__}"):
            server.complete()
        health = server.http.get("/health")
        assert health.status_code == 503 and error.__name__ in health.json()["status"]
        engine.requests.clear()  # nobody asks a failed engine for anything


def test_every_refusal_of_a_stopped_engine_is_an_exception_of_its_own():
    """One that is raised again and again would keep the frames of all requests."""

    async def refusals():
        thread = EngineThread(FakeEngine())
        thread.fail_all("The engine failed.")
        for _ in range(2):
            with pytest.raises(EngineStopped, match="The engine failed.") as raised:
                await thread.add([1], SamplingParameters())
            yield raised.value

    async def both():
        return [refusal async for refusal in refusals()]

    first, second = asyncio.run(both())
    assert first is not second


def test_a_failure_of_the_server_counts_as_500(server, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(protocol, "parse", fail)
    before = server.metric('requests_total{result="500"}')
    assert server.post({}).json()["error"]["message"] == "The server failed; its log says why."
    assert server.metric('requests_total{result="500"}') == before + 1
