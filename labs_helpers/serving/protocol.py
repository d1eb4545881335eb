"""Read a request to `/v1/completions` as the OpenAI API defines it.

`parse` turns a request's body into a `Completion`, or raises an `ApiError` that names the wrong field. A field that
this server does not support is refused, unless its value asks for nothing (`n` of 1, `echo` of false, …): a client must
not believe that it had an effect.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labs_helpers.serving.request import SamplingParameters

NOTHING: dict[str, Any] = {  # fields of the OpenAI API that are not supported → the value that asks for nothing
    "n": 1, "best_of": 1, "echo": False, "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {},
    "logprobs": None, "suffix": None,
}  # fmt: skip
MOST_STOPS, LONGEST_STOP = 4, 256  # strings, and characters of each


class ApiError(Exception):
    """An answer with an HTTP status of 400 or more. param: the request's field at fault."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def body(self) -> dict[str, Any]:
        kind = {429: "rate_limit_error"}.get(
            self.status, "server_error" if self.status >= 500 else "invalid_request_error"
        )
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def no_such_model(asked: str, model: str) -> ApiError:
    told = f"The model {_short(asked)!r} does not exist; this server has {model!r}."
    return ApiError(404, told, "model", "model_not_found")


def too_long(message: str) -> ApiError:
    """Return the error for a prompt that, with its max_tokens, does not fit."""
    return ApiError(400, message, "prompt", "context_length_exceeded")


@dataclass(frozen=True)
class Completion:
    """One request to complete a prompt. include_usage: whether a stream ends with the numbers of tokens."""

    model: str
    prompt: tuple[int, ...]
    how: SamplingParameters
    stream: bool = False
    include_usage: bool = False
    id: str = field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))


def parse(body: bytes, model: str, encode: Callable[[str], Sequence[int]], vocabulary: int) -> Completion:
    """Parse the body of a request to `/v1/completions`. model: the name of the only model; vocabulary: its size.

    Raises ApiError: 404 for another model, otherwise 400.
    """
    given = _object(body)
    fields = {name: value for name, value in given.items() if value is not None}  # null stands for the default
    asked = _take(fields, "model", str, None)
    if asked is None:
        raise _wrong("model", f"is missing; this server has {model!r}")
    if asked != model:
        raise no_such_model(asked, model)
    prompt = _prompt(fields.pop("prompt", None), encode, vocabulary)
    stream = _take(fields, "stream", bool, False)
    include_usage = _stream_options(fields.pop("stream_options", None), stream)
    how: dict[str, Any] = {"stop": _stops(fields.pop("stop", ()))}
    for name, kind in (("max_tokens", int), ("temperature", float), ("top_p", float), ("top_k", int), ("seed", int)):
        if name in fields:
            how[name] = _take(fields, name, kind, None)
    _take(fields, "user", str, "")  # identifies the client's user to OpenAI
    for name, value in fields.items():
        if name not in NOTHING:
            raise _wrong(name, "is not a field of this API")
        if value != NOTHING[name] or isinstance(value, bool) != isinstance(NOTHING[name], bool):
            supported = json.dumps(NOTHING[name])
            raise _wrong(name, f"is not supported; leave it out or set it to {supported}", "unsupported_value")
    try:
        return Completion(model, prompt, SamplingParameters(**how), stream, include_usage)
    except ValueError as error:  # a value out of range
        raise ApiError(400, str(error), next((name for name in how if name in str(error)), None)) from None


def _object(body: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        given = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise ApiError(400, f"The body is not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise ApiError(400, f"The body has to be a JSON object, not {_kind(given)}.")
    return given


def _wrong(name: str, what: str, code: str | None = None) -> ApiError:
    return ApiError(400, f"{_short(name)} {what}.", name, code)


def _short(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:64]}…"


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _take(fields: dict[str, Any], name: str, kind: Any, default: Any) -> Any:
    """Remove a field and return its value, or the default where it is missing. A float may be written as an integer."""
    value = fields.pop(name, default)
    if value is default:
        return default
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < 2**53 else math.inf
    if type(value) is not kind:
        names = {str: "a string", bool: "a boolean", int: "an integer", float: "a number"}
        given = value if type(value) is float else _kind(value)  # 2.0 is a number, too
        raise _wrong(name, f"has to be {names[kind]}, not {given}")
    if kind is float and not math.isfinite(value) or kind is int and not -(2**63) <= value < 2**63:
        raise _wrong(name, "is out of range")
    return value


def _prompt(value: Any, encode: Callable[[str], Sequence[int]], vocabulary: int) -> tuple[int, ...]:
    if isinstance(value, str):
        try:
            tokens = tuple(encode(value))
        except UnicodeEncodeError:
            raise _wrong("prompt", "contains half of a surrogate pair, which is not a character") from None
    elif isinstance(value, list) and all(type(token) is int for token in value):
        tokens = tuple(value)
        if wrong := [token for token in tokens if not 0 <= token < vocabulary]:
            raise _wrong("prompt", f"contains a token outside 0 to {vocabulary - 1}: {_short(str(wrong[0]))}")
    elif value is None:
        raise _wrong("prompt", "is missing")
    else:
        raise _wrong("prompt", "has to be one string or one array of tokens")
    if not tokens:
        raise _wrong("prompt", "is empty")
    return tokens


def _stops(value: Any) -> tuple[str, ...]:
    stops = (value,) if isinstance(value, str) else value
    if not isinstance(stops, list | tuple) or not all(isinstance(stop, str) for stop in stops):
        raise _wrong("stop", "has to be a string or an array of strings")
    if len(stops) > MOST_STOPS:
        raise _wrong("stop", f"has {len(stops)} strings; at most {MOST_STOPS} are allowed")
    if not all(0 < len(stop) <= LONGEST_STOP for stop in stops):
        raise _wrong("stop", f"needs strings of 1 to {LONGEST_STOP} characters")
    return tuple(stops)


def _stream_options(value: Any, stream: bool) -> bool:
    """Return whether the stream has to end with the usage."""
    if value is None:
        return False
    if not stream:
        raise _wrong("stream_options", "needs stream to be true")
    if not isinstance(value, dict):
        raise _wrong("stream_options", f"has to be an object, not {_kind(value)}")
    options = dict(value)
    include = _take(options, "include_usage", bool, False)
    for name in options:
        raise _wrong(f"stream_options.{name}", "is not supported")
    return include
