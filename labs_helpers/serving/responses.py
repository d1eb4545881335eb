"""Responses with JSON, and those for errors, which have the shape of the OpenAI API."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from labs_helpers.serving import answers
from labs_helpers.serving.protocol import ApiError

RETRY_AFTER_S = 1


def json_response(body: dict[str, Any], status: int = 200) -> Response:
    return Response(answers.as_json(body), status, media_type="application/json")


def error_response(error: ApiError) -> Response:
    response = json_response(error.body(), error.status)
    if error.status in (429, 503):
        response.headers["retry-after"] = str(RETRY_AFTER_S)
    return response


async def refuse(request: Request, error: Exception) -> Response:
    """Return the answer for an error outside of `Completions.answer`."""
    if isinstance(error, HTTPException):  # no such path, or not with this method
        said = f"{request.method} {request.url.path}: {error.detail}."
        if error.status_code == 404:
            paths = [path for route in request.app.routes if "{" not in (path := route.path)]
            said += f" This server has {', '.join(paths)}."
        response = error_response(ApiError(error.status_code, said))
        response.headers.update(error.headers or {})
        return response
    if isinstance(error, ApiError):
        return error_response(error)
    response = error_response(ApiError(500, "The server failed; its log says why."))
    response.headers["connection"] = "close"  # as uvicorn does: a client must not send another request on it
    return response
