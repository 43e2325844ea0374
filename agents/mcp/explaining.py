"""Explain the errors that the MCP SDK reports in a server's place, in words for users and models."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError

CLOSED = "Connection closed"
# The beginning of the error of a body that is too long (agents/mcp/http.py).
TOO_LONG = "the answer has more than"
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
    "Failed to parse JSON response: ": "its answer is not a valid message",
    "Failed to parse SSE message: ": "its answer is not a valid message",
    "Unexpected content type: ": "its answer has a type that MCP servers do not use",
    "SSE stream failed: Server-sent event exceeded ": "its answer is too long",
    "SSE stream ": "it ended its answer too early",
    "Redirect to ": "its address redirects to another address",
}


def explanation(error: MCPError) -> str:
    """Return what has happened if the error is one of the SDK, or "" if it is one of the server."""
    text = error.message
    if text.startswith("Request ") and text.endswith(" timed out"):
        return "it did not answer in time"
    return _MESSAGES.get(text) or next((words for begin, words in _BEGINNINGS.items() if text.startswith(begin)), "")
