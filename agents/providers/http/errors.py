"""The mapping of failures of an endpoint, its SDK and the network to errors that explain to users what to do."""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientProxyConnectionError

from agents.errors import (
    AuthenticationFailed,
    CallBroken,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    NoCredit,
    Overloaded,
    ParameterRefused,
    ProviderError,
    RateLimited,
    RequestRejected,
    ResponseBroken,
    ResponseTimedOut,
    ToolsRefused,
    Unsendable,
)
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.providers.failures import failure_in, message_of

TOO_LONG = re.compile(
    r"(?i)context[ _](length|window|size|limit)|maximum context|prompt is too long|prompt (is )?too large"
    r"|input (is|token count).{0,40}(too long|exceeds)|reduce the length of|too many (input |total )?tokens"
    r"|exceeds? the maximum number of (input )?tokens|request_too_large|maximum prompt length|prompt exceeds max length"
    r"|token count of \d+ exceeds|exceeded model token limit|range of input length"
    r"|too much media|too many images|pdf pages may be provided"
)
# Servers also send these messages with statuses that advise to wait: OpenAI with 429 for a request with more tokens
# than the account may use per minute, llama.cpp with 500 if the context is full.
TOO_LONG_AT_ANY_STATUS = re.compile(r"(?i)request too large|context size has been exceeded|exceed_context_size_error")
NO_MODEL = re.compile(
    r"(?i)model_not_found|model_decommissioned|\bmodel\b.{0,80}\b(does not exist|not found|decommissioned)"
)
# OpenRouter's refusals of a model that it knows, because no server behind it has what the request or the account needs.
NO_ROUTE = re.compile(r"(?i)no endpoints \w+ (that|matching)")
NO_CREDIT = re.compile(
    r"(?i)insufficient_quota|insufficient.{0,10}(balance|credit|fund)|credit balance is too low|billing_error"
)
# The words of Ollama, vLLM and OpenRouter.
NO_TOOLS = re.compile(r"(?i)does not support tools|requires --enable-auto-tool-choice|that support tool use")
# The words of OpenAI, Groq, xAI and Gemini for too many tools, and of OpenAI for a description that is too long.
TOO_MANY_TOOLS = re.compile(
    r"(?i)'tools' ?: (array too long|maximum number of items)|maximum tools limit|at most \d+ function declarations"
    r"|more than \d+ tools|tools\[\d+\](\.function)?\.description\W+string too long"
)
# Groq's name for a tool call that it cannot read, or that the model made although the request allows none.
CALL_BROKEN = "tool_use_failed"
# Anthropic names the parameter first ("thinking.budget_tokens: Input should be …").
PARAMETER = re.compile(r"([a-z][a-z0-9_]*)(\.[a-z0-9_.]+)?: ")
# The values of these parameters come from the conversation and the session, not from a setting.
CONVERSATION = frozenset(
    {"messages", "input", "prompt", "model", "system", "instructions", "tools", "tool_choice", "error"}
)
KEY_LIKE = re.compile(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*.-]{6,}")

PASSWORD = re.compile(r"//[^/@]*@")

# The vendors' names of errors in the middle of a stream, where there is no status line, and the matching statuses.
STATUS_OF_KIND = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "vector_store_timeout": 504,
}
# Codes of OpenAI's Responses API for invalid requests (openai.types.responses.ResponseError).
STATUS_OF_KIND |= dict.fromkeys(
    (
        "bio_policy",
        "data_residency_mismatch",
        "empty_image_file",
        "failed_to_download_image",
        "image_content_policy_violation",
        "image_file_not_found",
        "image_file_too_large",
        "image_parse_error",
        "image_too_large",
        "image_too_small",
        "invalid_base64_image",
        "invalid_image",
        "invalid_image_format",
        "invalid_image_mode",
        "invalid_image_url",
        "invalid_prompt",
        "misalignment_policy_violation",
        "unsupported_image_media_type",
    ),
    400,
)


@dataclass(frozen=True)
class ErrorBody:
    """A server's description of a failure.

    `message` is its message for users, `kind` its own names of the failure, and `parameter` the parameter that it
    refuses. Each is empty, and `status` None, if the server does not send it.
    """

    message: str = ""
    kind: str = ""
    status: int | None = None
    parameter: str = ""


def read_error_body(body: object) -> ErrorBody:
    """Read an error body in any form that servers use: {"error": {…}}, {"error": "…"}, {"detail": …} or text."""
    if isinstance(body, str):
        return ErrorBody("" if "<html" in body.lower() else short(body))
    inner = failure_in(body)
    if not isinstance(inner, Mapping):
        return ErrorBody(short(str(inner)) if isinstance(body, Mapping) else "")
    names = [str(inner[key]) for key in ("type", "code") if isinstance(inner.get(key), str)]
    code = inner.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    message = message_of(inner)
    status = status or next((STATUS_OF_KIND[name] for name in names if name in STATUS_OF_KIND), None)
    return ErrorBody(short(message), " ".join(names), status, _parameter(inner.get("param"), message))


def _parameter(named: object, message: str) -> str:
    """Return the parameter of the request that a refusal names, or "" if it cannot come from a setting."""
    match = PARAMETER.match(message)
    found = named if isinstance(named, str) else match[0].removesuffix(": ") if match else ""
    return "" if re.split(r"[.\[]", found)[0] in CONVERSATION else found[:80]


def short(text: str) -> str:
    """Return a text of a provider on one line, with at most 400 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:399] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which a server asks to wait, or None. The headers have milliseconds, seconds or a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value and (date := email.utils.parsedate_tz(value)):
        seconds = max(0.0, email.utils.mktime_tz(date) - time.time())
    return seconds


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


@dataclass(frozen=True)
class Endpoint:
    """A model server with the name that users see, and the errors that name it.

    `key` is used only to hide it in the server's messages. `key_hint` is the name of the variable that has it.
    """

    name: str
    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    key_hint: str = ""

    @property
    def address(self) -> str:
        """The URL without the user name and password that it may contain."""
        return PASSWORD.sub("//", self.url)

    def refused(
        self, body: ErrorBody, model: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """Return the error for a status line, or for an error event in a stream."""
        known = status or body.status
        status = known or 500
        error = self._refused_content(body, model, status, is_known=known is not None)
        if error is not None:
            return error
        if status == 429:
            wait = retry_after(headers or {})
            return RateLimited(self._quote(self._busy(wait), body), retry_after=wait, status=status)
        if status == 408:
            problem = _("The request to {name} timed out.", name=self.name)
            return ResponseTimedOut(self._quote(problem, body), status=status)
        if status >= 500:
            problem = _("{name} is overloaded or down ({status}). Retry later.", name=self.name, status=status)
            return Overloaded(self._quote(problem, body), retry_after=retry_after(headers or {}), status=status)
        if body.parameter:
            problem = _("{name} rejected the parameter “{parameter}”.", name=self.name, parameter=body.parameter)
            return ParameterRefused(self._quote(problem, body), status=status)
        problem = _("{name} rejected the request ({status}).", name=self.name, status=status)
        return RequestRejected(self._quote(problem, body), status=status)

    def unsendable(self, error: Exception) -> Unsendable:
        """Return the error for a request that could not be sent, because its address or key is invalid."""
        reason = self._hide_keys(short(PASSWORD.sub("//", str(error))))
        problem = _(
            "Couldn’t send the request to {name}: {reason}. Check its address and API key{key}.",
            name=self.name,
            reason=reason,
            key=self._key,
        )
        return Unsendable(problem)

    def unreachable(self, error: BaseException) -> ConnectionLost:
        """Return the error for a connection that could not be opened, or that ended before the answer."""
        return ConnectionLost(_("Couldn’t reach {name} at {address}: {reason}.", **self._who, reason=_reason(error)))

    def cut(self) -> ConnectionLost:
        """Return the error for an answer that stopped in the middle."""
        problem = _("The connection to {name} ({address}) was lost during the answer.", **self._who)
        return ConnectionLost(problem)

    def timed_out(self, seconds: float) -> ResponseTimedOut:
        """Return the error for a server that sent nothing for this many seconds."""
        problem = _("{name} ({address}) sent nothing for {seconds} seconds.", **self._who, seconds=f"{seconds:g}")
        return ResponseTimedOut(problem)

    def broken(self, detail: str) -> ResponseBroken:
        """Return the error for a response that is not in the vendor's format."""
        detail = self._hide_keys(short(detail))
        if detail:
            problem = _("Unexpected response from {name} ({address}): {detail}", **self._who, detail=detail)
        else:
            problem = _("Empty response from {name} ({address}).", **self._who)
        return ResponseBroken(problem)

    def _refused_content(self, body: ErrorBody, model: str, status: int, *, is_known: bool) -> ProviderError | None:
        """Return the error if more than the status is needed to recognize it: the server's words, or the model."""
        about_request = not is_known or (status < 500 and status != 429)
        about = f"{body.kind} {body.message}"
        if status == 402 or NO_CREDIT.search(about):
            problem = _("{name} reports insufficient credit.", name=self.name)
            return NoCredit(self._quote(problem, body), status=status)
        if status in {401, 403}:
            return AuthenticationFailed(self._quote(self._unauthorized(status), body), status=status)
        if CALL_BROKEN in body.kind:
            problem = _("{name} couldn’t read the model’s tool call.", name=self.name)
            return CallBroken(self._quote(problem, body), status=status)
        if refusal := self._tools_problem(about, model):
            return ToolsRefused(self._quote(refusal, body), status=status)
        too_long = TOO_LONG_AT_ANY_STATUS.search(about) or (about_request and TOO_LONG.search(about))
        if status == 413 or too_long:
            problem = _("The conversation is too long for {model}. Remove part of it.", model=model)
            return ContextTooLong(self._quote(problem, body), status=status)
        if status == 404 and not model:
            problem = _("{name} ({address}) doesn’t list its models.", **self._who)
            return RequestRejected(self._quote(problem, body), status=status)
        is_unknown = status == 404 or (about_request and NO_MODEL.search(about))
        if model and is_unknown and not NO_ROUTE.search(about):
            problem = _("{name} ({address}) does not know the model “{model}”.", **self._who, model=model)
            return ModelNotFound(self._quote(problem, body), status=status)
        return None

    def _tools_problem(self, about: str, model: str) -> TranslatableText | None:
        if NO_TOOLS.search(about):
            return _(
                "{model} on {name} doesn’t support tools. Switch the session to “Chat without tools”, or choose "
                "another model or an agent without tools.",
                name=self.name,
                model=model,
            )
        if TOO_MANY_TOOLS.search(about):
            return _(
                "{name} doesn’t accept this many tools, or the long description of a tool. Leave out tools of the "
                "agent or of its MCP servers, choose another model, or switch the session to “Chat without tools”.",
                name=self.name,
            )
        return None

    @property
    def _who(self) -> dict[str, str]:
        return {"name": self.name, "address": self.address}

    @property
    def _key(self) -> str:
        """The name of the key's variable in parentheses, with a space before them, or ""."""
        return f" ({self.key_hint})" if self.key_hint else ""

    def _busy(self, wait: float | None) -> TranslatableText:
        if wait is None:
            return _("Rate limit reached at {name}. Retry later.", name=self.name)
        return _("Rate limit reached at {name}. Retry in {seconds} s.", name=self.name, seconds=f"{wait:.0f}")

    def _unauthorized(self, status: int) -> TranslatableText:
        if not self.key and self.key_hint:
            return _("{name} needs an API key. Set {key}.", name=self.name, key=self.key_hint)
        if not self.key:
            return _("{name} needs an API key, and none is set.", name=self.name)
        if status == 401:
            return _("{name} rejected the API key{key}.", name=self.name, key=self._key)
        return _("The API key{key} isn’t allowed to do this at {name}.", name=self.name, key=self._key)

    def _quote(self, problem: TranslatableText, body: ErrorBody) -> TranslatableText:
        """Return the problem with the server's own message, if it sent one."""
        message = self._hide_keys(body.message)
        return _("{problem} It says: {words}", problem=problem, words=message) if message else problem

    def _hide_keys(self, text: str) -> str:
        """Replace API keys, because servers quote a key that they refuse."""
        if len(self.key) >= 8:
            text = text.replace(self.key, "[key]")
        return KEY_LIKE.sub("[key]", text)


def _reason(error: BaseException) -> str:
    """Describe the cause of a network error, from the chain of errors that led to it."""
    chain = list(_causes(error))
    for link in chain:
        if isinstance(link, ClientProxyConnectionError):
            return _("the proxy {address} couldn’t be reached", address=f"{link.host}:{link.port}")
        if isinstance(link, ConnectionRefusedError):
            return _("the connection was refused (is the server running?)")
        if isinstance(link, socket.gaierror):
            return _("the host name couldn’t be resolved")
        if isinstance(link, ssl.SSLError):
            return _("the TLS connection failed ({reason})", reason=link.reason or "certificate")
        if isinstance(link, TimeoutError):
            return _("the connection timed out")
    return short(str(chain[-1])) or type(chain[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes. aiohttp keeps the operating system's error in the attribute `os_error`."""
    seen: set[int] = set()
    link: Any = error
    while isinstance(link, BaseException) and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = getattr(link, "os_error", None) or link.__cause__ or link.__context__
