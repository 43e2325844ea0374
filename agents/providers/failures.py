"""Turns what an endpoint, its SDK or the network says went wrong into the error that tells a person what to do."""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.errors import (
    AuthenticationFailed,
    ConnectionLost,
    ContextTooLong,
    ModelNotFound,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRejected,
    ResponseBroken,
    ResponseTimedOut,
)

TOO_LONG = re.compile(
    r"(?i)context[ _](length|window|size|limit)|maximum context|prompt is too long|prompt (is )?too large"
    r"|input (is|token count).{0,40}(too long|exceeds)|reduce the length of|too many (input |total )?tokens"
    r"|exceeds? the maximum number of (input )?tokens|request_too_large"
)
NO_MODEL = re.compile(
    r"(?i)model_not_found|model_decommissioned|\bmodel\b.{0,80}\b(does not exist|not found|decommissioned)"
)
NO_CREDIT = re.compile(
    r"(?i)insufficient_quota|insufficient.{0,10}(balance|credit|fund)|credit balance is too low|billing_error"
)
KEY_LIKE = re.compile(r"\b((sk|pk|gsk|xai)[-_]|AIza)[\w*.-]{6,}")

PASSWORD = re.compile(r"//[^/@]*@")

# The vendors' names for an error that comes in the middle of a stream, where there is no status line.
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
}


@dataclass(frozen=True)
class Complaint:
    """What a server said of a failure: `words` for a person, `kind` its own names for it, "" where it has none."""

    words: str = ""
    kind: str = ""
    status: int | None = None


def read_complaint(body: object) -> Complaint:
    """Read an error body in any of the forms that servers use; {"error": {…}}, {"error": "…"}, {"detail": …}, text."""
    if isinstance(body, str):
        return Complaint("" if "<html" in body.lower() else _short(body))
    if not isinstance(body, Mapping):
        return Complaint()
    inner = body.get("error", body)
    if not isinstance(inner, Mapping):
        return Complaint(_short(str(inner)))
    names = [str(inner[key]) for key in ("type", "code") if isinstance(inner.get(key), str)]
    code = inner.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    words = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    kind = " ".join(names)
    return Complaint(_short(str(words)), kind, status or _status_of(names))


def _status_of(names: list[str]) -> int | None:
    return next((STATUS_OF_KIND[name] for name in names if name in STATUS_OF_KIND), None)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:399] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait; it may say it in milliseconds, seconds or as a date."""
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
    """Who is asked, in a person's words; makes the errors that speak of it. The key is here only to be hidden."""

    name: str
    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    key_hint: str = ""

    @property
    def address(self) -> str:
        """The URL without the password that it may hold."""
        return PASSWORD.sub("//", self.url)

    def refused(
        self, complaint: Complaint, model: str, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """Make the error for a status line (or, in a stream, for an error event)."""
        known = status or complaint.status
        status = known or 500
        about_request = known is None or (known < 500 and known != 429)
        said = self._said(complaint)
        about = f"{complaint.kind} {complaint.words}"
        if status == 402 or NO_CREDIT.search(about):
            return RequestRejected(f"The account at {self.name} cannot pay for this.{said}", status=status)
        if status in {401, 403}:
            return self._unauthorised(status, said)
        if status == 413 or (about_request and TOO_LONG.search(about)):
            return ContextTooLong(f"The conversation is too long for {model}. Remove part of it.{said}", status=status)
        if status == 404 or (about_request and NO_MODEL.search(about)):
            return ModelNotFound(
                f"{self.name} ({self.address}) does not know the model “{model}”.{said}", status=status
            )
        if status == 429:
            wait = retry_after(headers or {})
            when = "later" if wait is None else f"in {wait:.0f} s"
            text = f"{self.name} takes no more requests for now. Try again {when}.{said}"
            return RateLimited(text, retry_after=wait, status=status)
        if status == 408:
            return ResponseTimedOut(f"{self.name} gave up waiting for the request.{said}", status=status)
        if status >= 500:
            text = f"{self.name} is overloaded or out of order ({status}). Try again later.{said}"
            return Overloaded(text, retry_after=retry_after(headers or {}), status=status)
        return RequestRejected(f"{self.name} refuses the request ({status}).{said}", status=status)

    def unsendable(self, error: Exception) -> RequestRejected:
        """Make the error for a request that did not get as far as the network."""
        source = f" ({self.key_hint})" if self.key_hint else ""
        reason = self._hide_keys(_short(PASSWORD.sub("//", str(error))))
        return RequestRejected(
            f"The request to {self.name} cannot be sent: {reason}. Check its address and its API key{source}."
        )

    def unreachable(self, error: BaseException) -> ConnectionLost:
        """Make the error for a connection that did not come about, or ended before any answer."""
        return ConnectionLost(f"Cannot reach {self.name} at {self.address}: {_reason(error)}.")

    def cut(self) -> ConnectionLost:
        """Make the error for an answer that stopped in the middle."""
        return ConnectionLost(f"The connection to {self.name} ({self.address}) broke off in the middle of the answer.")

    def timed_out(self, seconds: float) -> ResponseTimedOut:
        """Make the error for silence."""
        return ResponseTimedOut(f"{self.name} ({self.address}) sent nothing for {seconds:g} seconds.")

    def broken(self, detail: str) -> ResponseBroken:
        """Make the error for bytes that are no model's answer."""
        detail = self._hide_keys(_short(detail))
        return ResponseBroken(f"{self.name} ({self.address}) sent something that is not a model's answer: {detail}")

    def _unauthorised(self, status: int, said: str) -> AuthenticationFailed:
        source = f" (from {self.key_hint})" if self.key_hint else ""
        if not self.key:
            remedy = f" Set {self.key_hint}." if self.key_hint else ""
            return AuthenticationFailed(f"{self.name} wants an API key and none is set.{remedy}{said}", status=status)
        if status == 401:
            return AuthenticationFailed(f"{self.name} does not accept the API key{source}.{said}", status=status)
        return AuthenticationFailed(f"The API key{source} may not do this at {self.name}.{said}", status=status)

    def _said(self, complaint: Complaint) -> str:
        words = self._hide_keys(complaint.words)
        return f" It says: {words}" if words else ""

    def _hide_keys(self, text: str) -> str:
        """Servers quote the key that they refuse."""
        if len(self.key) >= 8:
            text = text.replace(self.key, "[key]")
        return KEY_LIKE.sub("[key]", text)


def _reason(error: BaseException) -> str:
    """Say in words what lies at the bottom of a chain of network errors."""
    chain = list(_causes(error))
    for link in chain:
        if isinstance(link, ConnectionRefusedError):
            return "the connection was refused; is the server running?"
        if isinstance(link, socket.gaierror):
            return "the host name cannot be resolved"
        if isinstance(link, ssl.SSLError):
            return f"the TLS connection failed ({link.reason or 'certificate'})"
        if isinstance(link, TimeoutError):
            return "it did not take the connection in time"
    return _short(str(chain[-1])) or type(chain[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Walk to the root; aiohttp keeps the operating system's error in an attribute of its own."""
    seen: set[int] = set()
    link: Any = error
    while isinstance(link, BaseException) and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = getattr(link, "os_error", None) or link.__cause__ or link.__context__
