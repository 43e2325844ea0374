"""Explain why a server's requests and connections fail, in words for users and models."""

from __future__ import annotations

import json
import secrets
from typing import Any

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.mcp.lists import problem_of

CLOSED = "Connection closed"
# The beginnings of errors of a body that is too long, or ends too early (agents/mcp/http.py).
TOO_LONG = "the answer has more than"
CUT_SHORT = "the answer was cut short"
# The beginnings of errors of requests that have failed in Parley: because of the sign-in, because the server has ended
# the session, and for other reasons. Random, so that no server can write Parley's words.
SIGN_IN, SESSION, OTHER = (secrets.token_hex(16) for _ in range(3))
# For the HTTP status 404 of a server without sessions. The error has the code of an unknown method.
NOT_FOUND = "Not Found"
# The SDK's messages, and what has happened. Messages of servers are shown unchanged.
_MESSAGES = {
    CLOSED: "it closed the connection",
    "Server returned an error response": "it answered with an HTTP error",
    "Session terminated": "it has ended the session",
    NOT_FOUND: "it answered with the HTTP status 404 (Not Found)",
    "server answered a request with 202 Accepted": "it accepted the request, but did not answer it",
}
# The beginnings of longer messages. The first that fits counts.
_BEGINNINGS = {
    f"Failed to parse JSON response: {TOO_LONG} ": "its answer is too long",
    f"Failed to parse JSON response: {CUT_SHORT}": "it ended its answer too early",
    "Failed to parse JSON response: ": "its answer is not a valid message",
    "Failed to parse SSE message: ": "its answer is not a valid message",
    "Unexpected content type: ": "its answer has a type that MCP servers do not use",
    "SSE stream failed: Server-sent event exceeded ": "its answer is too long",
    "SSE stream ": "it ended its answer too early",
    "Redirect to ": "its address redirects to another address",
}


def failed(words: str, beginning: str = OTHER) -> str:
    """Return the message of an error that `explanation` explains with these words, which stay translatable."""
    return beginning + json.dumps(words.to_json() if isinstance(words, TranslatableText) else words)


def needs_sign_in(error: MCPError) -> bool:
    """Return whether a request has failed because there is no valid sign-in."""
    return error.message.startswith(SIGN_IN)


def has_no_session(error: MCPError) -> bool:
    """Return whether the server has not executed a request, because it has ended the session."""
    return error.message.startswith(SESSION)


def failure(error: MCPError) -> str:
    """Return why a request could not be sent or was not answered, or "" if another error has happened."""
    text = error.message
    return _words_of(json.loads(text[len(OTHER) :])) if text.startswith((SIGN_IN, SESSION, OTHER)) else ""


def _words_of(found: Any) -> str:
    """Return a text from its JSON form."""
    if isinstance(found, dict):
        return TranslatableText(found["template"], {name: _words_of(each) for name, each in found["values"].items()})
    return str(found)


def explanation(error: MCPError) -> str:
    """Return what has happened if the error is one of Parley or the SDK, or "" if it is one of the server."""
    if words := failure(error):
        return words
    text = error.message
    if text.startswith("Request ") and text.endswith(" timed out"):
        return "it did not answer in time"
    return _MESSAGES.get(text) or next((words for begin, words in _BEGINNINGS.items() if text.startswith(begin)), "")


def first_of(error: BaseException) -> BaseException:
    """Return the first error in a group of errors, or the error itself if it is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """Return in one line why a connection failed. For a group of errors, describe the first one.

    Reasons that users of an MCP server's test see are a TranslatableText, unless they are in the words of others.
    """
    error = first_of(error)
    if error.args and isinstance(error.args[0], TranslatableText):
        return error.args[0]
    if isinstance(error, FileNotFoundError):
        return f"the program {error.filename} is not installed"
    if isinstance(error, KeyError):
        return f"the environment variable {error.args[0]} is not set"
    if isinstance(error, ValidationError):
        return _("it answered with an invalid result ({problem})", problem=problem_of(error))
    if isinstance(error, MCPError) and (words := explanation(error)):
        return words
    text = str(error).strip().splitlines()
    return (text[0][:300] if text else type(error).__name__).rstrip(".")
