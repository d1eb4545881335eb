"""The bodies of answers to `/v1/completions` and `/v1/models`, shaped like those of the OpenAI API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labs_helpers.serving.protocol import Completion
from labs_helpers.serving.request import FinishReason, Output

DONE = b"data: [DONE]\n\n"
_encode = json.JSONEncoder(separators=(",", ":")).encode


def answer(asked: Completion, text: str, last: Output) -> dict[str, Any]:
    """Return the body of a whole answer. last: the request's last output."""
    return _body(asked, [_choice(text, last.finished)]) | {"usage": usage(last)}


def event(asked: Completion, output: Output) -> bytes:
    """Return the server-sent event for an output."""
    body = _body(asked, [_choice(output.text, output.finished)])
    return as_event(body | {"usage": None} if asked.include_usage else body)


def last_events(asked: Completion, output: Output) -> bytes:
    """Return the events that end a stream: its last output, the usage if it was asked for, and `[DONE]`."""
    events = event(asked, output)
    if asked.include_usage:
        events += as_event(_body(asked, []) | {"usage": usage(output)})
    return events + DONE


def as_event(body: Mapping[str, Any]) -> bytes:
    """Return a server-sent event with this JSON."""
    return b"data: %s\n\n" % as_json(body)


def as_json(body: Mapping[str, Any]) -> bytes:
    """Return JSON in ASCII: a client's half of a surrogate pair, quoted in a message, has no encoding in UTF-8."""
    return _encode(body).encode("ascii")


def models(model: str, created: int) -> dict[str, Any]:
    """Return the list of the only model. created: the Unix time at which it was loaded."""
    return {"object": "list", "data": [described(model, created)]}


def described(model: str, created: int) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": created, "owned_by": "tile-to-cluster"}


def usage(output: Output) -> dict[str, Any]:
    """Return the numbers of tokens of a request up to this output."""
    total = output.prompt_tokens + output.completion_tokens
    return {
        "prompt_tokens": output.prompt_tokens,
        "completion_tokens": output.completion_tokens,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": output.cached_tokens},
    }


def _body(asked: Completion, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": asked.id, "object": "text_completion", "created": asked.created, "model": asked.model, "choices": choices,
    }  # fmt: skip


def _choice(text: str, finished: FinishReason | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finished and finished.value}
