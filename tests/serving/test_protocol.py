"""Test that every body that is no valid request gets an error of the API that names what is wrong."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labs_helpers.serving.protocol import ApiError, parse
from labs_helpers.serving.text import ByteTokenizer

GOOD = {"model": "bytes", "prompt": "x"}


def refused(body):
    """The error for a body, as an object or as bytes."""
    given = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(ApiError) as raised:
        parse(given, "bytes", ByteTokenizer().encode, 256)
    return raised.value


@pytest.mark.parametrize(
    "body, said",
    [
        (b"", "not valid JSON: Expecting value"),
        (b'{"model": "bytes", "prompt": "x"', "not valid JSON"),
        (b"\xff\xfe\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"temperature": NaN}', "not valid JSON: NaN is not JSON"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"[]", "has to be a JSON object, not an array"),
        (b"null", "has to be a JSON object, not null"),
    ],
)
def test_what_is_no_json_object(body, said):
    error = refused(body)
    assert error.status == 400 and said in error.message and error.param is None


@pytest.mark.parametrize(
    "field, value, said",
    [
        ("model", None, "is missing; this server has 'bytes'"),
        ("model", 3, "has to be a string, not a number"),
        ("prompt", None, "is missing"),
        ("prompt", "", "prompt is empty."),
        ("prompt", [], "is empty"),
        ("prompt", ["one", "two"], "one string or one array of tokens"),
        ("prompt", [[1, 2]], "one string or one array of tokens"),
        ("prompt", [1, True], "one string or one array of tokens"),
        ("prompt", [1, 256], "a token outside 0 to 255: 256"),
        ("prompt", [-1], "a token outside 0 to 255: -1"),
        ("prompt", "\ud800", "half of a surrogate pair"),
        ("max_tokens", "5", "has to be an integer, not a string"),
        ("max_tokens", True, "has to be an integer, not a boolean"),
        ("max_tokens", 2.5, "max_tokens has to be an integer, not 2.5."),
        ("max_tokens", 0, "max_tokens is 0; it has to be"),
        ("max_tokens", 10**30, "is out of range"),
        ("temperature", -1, "temperature is -1.0; it has to be"),
        ("temperature", 10**20, "is out of range"),
        ("temperature", [1], "has to be a number, not an array"),
        ("top_p", 0, "top_p is 0.0; it has to be"),
        ("top_k", 0, "top_k is 0; it has to be 1 or more; without it, all"),
        ("seed", 2**63, "is out of range"),
        ("seed", 1.0, "has to be an integer, not 1.0"),
        ("stop", "", "stop needs strings of 1 to 256 characters"),
        ("stop", ["a"] * 5, "has 5 strings; at most 4"),
        ("stop", [1], "a string or an array of strings"),
        ("stop", {"a": 1}, "a string or an array of strings"),
        ("stream", "yes", "has to be a boolean, not a string"),
        ("stream_options", {"include_usage": True}, "needs stream to be true"),
        ("n", 2, "is not supported; leave it out or set it to 1"),
        ("n", True, "is not supported"),
        ("echo", True, "is not supported; leave it out or set it to false"),
        ("logprobs", 5, "is not supported; leave it out or set it to null"),
        ("logit_bias", {"50256": -100}, "is not supported"),
        ("suffix", "!", "is not supported"),
        ("presence_penalty", 0.5, "is not supported; leave it out or set it to 0"),
        ("max_token", 5, "is not a field of this API"),
        ("user", 5, "has to be a string, not a number"),
        ("x" * 5000, 5, "is not a field of this API"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(field, value, said):
    error = refused(GOOD | {field: value})
    assert error.status == 400 and error.param == field and said in error.message and len(error.message) < 300
    assert field[:60] in error.message or "it has to be" in error.message
    assert error.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "options, field, said",
    [
        ({"include_usage": 1}, "include_usage", "has to be a boolean"),
        ({"continuous": True}, "stream_options.continuous", "is not supported"),
        ([], "stream_options", "has to be an object, not an array"),
    ],
)
def test_wrong_stream_options(options, field, said):
    error = refused(GOOD | {"stream": True, "stream_options": options})
    assert error.param == field and said in error.message


def test_another_model_is_not_found():
    error = refused(GOOD | {"model": "gpt-5"})
    assert (error.status, error.param, error.code) == (404, "model", "model_not_found")


def test_null_and_values_that_ask_for_nothing_are_the_defaults():
    names = ["max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "stream", "stream_options", "user", "n",
             "best_of", "echo", "logprobs", "suffix", "logit_bias", "frequency_penalty",
             "presence_penalty"]  # fmt: skip
    plain = parse(json.dumps(GOOD).encode(), "bytes", ByteTokenizer().encode, 256)
    nothing = {"n": 1, "best_of": 1, "echo": False, "logit_bias": {}, "presence_penalty": 0.0, "frequency_penalty": 0}
    for fields in (dict.fromkeys(names), nothing):
        asked = parse(json.dumps(GOOD | fields).encode(), "bytes", ByteTokenizer().encode, 256)
        assert (asked.prompt, asked.how, asked.stream) == (plain.prompt, plain.how, False) == ((120,), plain.how, False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "seed", "stop", "stream", "stream_options",
          "n", "best_of", "echo", "logprobs", "suffix", "logit_bias", "presence_penalty", "user", "other"]  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)
USUALLY_VALID = st.builds(lambda fields: GOOD | {"max_tokens": 3} | fields, OBJECTS)
BODIES = st.binary(max_size=50) | st.builds(lambda body: json.dumps(body).encode(), VALUES | OBJECTS | USUALLY_VALID)


@settings(max_examples=400)
@given(BODIES)
@example(json.dumps(GOOD | {"\ud800": 1}).encode())
@example(json.dumps(GOOD | {"model": "\ud800"}).encode())
@example(json.dumps(GOOD | {"stop": "\ud800"}).encode())
@example(b'{"model": "bytes", "prompt": "x", "temperature": 1e400}')
def test_no_body_makes_the_server_fail(server, body):
    answer = server.http.post("/v1/completions", content=body, headers={"content-type": "application/json"})
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert answer.status_code in (400, 404) and error["message"] and error["type"] == "invalid_request_error"
    elif answer.headers["content-type"] == "application/json":
        assert answer.json()["choices"][0]["finish_reason"] in ("length", "stop")
    else:
        assert answer.text.endswith("data: [DONE]\n\n")
