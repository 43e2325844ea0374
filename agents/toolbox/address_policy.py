"""Decides which web addresses a tool may open: by the agent's list of hosts, and by who chose the address. Pure.

A page, a file or an imported conversation can hold instructions, and a model that follows them could write what it has
read into an address of theirs. So once such text is in the context, only addresses are opened that others chose:
those that people have written, and the links in what was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from yarl import URL

from agents.messages import File, Message, Text, ToolResult

# Addresses of one host that are looked at; a page with more of them is not there to be read.
MOST_CANDIDATES = 5_000
LONGEST_ADDRESS = 4_096
MOST_TRAILING = 6
_HOST = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# What ends an address in running text, Chinese and Japanese punctuation too.
_DELIMITERS = re.compile(r"[\s<>\"'`\\^{}|\[\]，。、；：！？（）《》「」『』【】“”‘’]+")
_SCHEME = re.compile(r"(?i)https?://")
# Characters that can follow an address without being part of it.
_TRAILING = ".,;:!?)*_~&"


def host_pattern(text: str) -> str:
    """Check an entry of a list of hosts: "example.com", or "*.example.com" for all names below it.

    Returns it in the form in which hosts are compared. Raises ValueError.
    """
    pattern = text.strip().lower().rstrip(".")
    wildcard, name = ("*.", pattern[2:]) if pattern.startswith("*.") else ("", pattern)
    try:
        host = URL.build(scheme="https", host=name).raw_host if name else None
    except ValueError:
        host = None
    if not host or not _HOST.fullmatch(wildcard + host):
        raise ValueError("a host is a name such as example.com, or *.example.com for all names below it")
    return wildcard + host


def is_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Whether a host (as `host_pattern` writes it) is on a list; an empty list holds all of them."""
    return not patterns or any(
        host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern for pattern in patterns
    )


def is_known(target: URL, texts: Iterable[str]) -> bool:
    """Whether texts hold this very address, or its host where nothing but the host is asked for."""
    wanted, is_root = _canonical(target), _is_root(target)
    for address in islice(_addresses(target, texts), MOST_CANDIDATES):
        if _canonical(address) == wanted or (is_root and address.raw_host == target.raw_host):
            return True
    return False


def is_same_site(one: URL, other: URL) -> bool:
    """Whether a redirect stays where it was: the same host, with or without "www."."""
    return _site(one) == _site(other)


def _site(url: URL) -> str:
    return (url.raw_host or "").removeprefix("www.")


def _is_root(url: URL) -> bool:
    return url.raw_path in ("", "/") and not url.raw_query_string and url.port in (80, 443)


def _canonical(url: URL) -> tuple[str | None, int | None, str, str]:
    """Return what a request tells its server. The scheme and a trailing slash make no difference."""
    port = None if url.port in (80, 443) else url.port
    return url.raw_host, port, url.raw_path.rstrip("/"), url.raw_query_string


def _addresses(target: URL, texts: Iterable[str]) -> Iterator[URL]:
    """Find the addresses of a target's host in texts, in all the ways in which they may be meant."""
    hosts = {host.lower() for host in (target.raw_host, target.host) if host}
    for text in texts:
        if not any(host in text.lower() for host in hosts):
            continue
        for token in _DELIMITERS.split(text):
            for piece in _pieces(token):
                folded = piece[:LONGEST_ADDRESS].lower()
                if len(piece) <= LONGEST_ADDRESS and any(host in folded for host in hosts):
                    yield from _without_trailing(piece)


def _pieces(token: str) -> Iterator[str]:
    """Take a token for an address, for several that stand together, or for one without its scheme."""
    starts = [match.start() for match in _SCHEME.finditer(token)]
    yield token[starts[0] :] if starts else f"http://{token.lstrip('(*')}"
    for start, end in pairwise([*starts, len(token)] if starts else []):
        yield token[start:end]


def _without_trailing(piece: str) -> Iterator[URL]:
    """Read an address with and without the punctuation at its end, which may be the sentence's."""
    for _ in range(MOST_TRAILING):
        try:
            url = URL(piece)
        except ValueError:
            return
        if url.raw_host:
            yield url
        if piece[-1] not in _TRAILING:
            return
        piece = piece[:-1]


def foreign_texts(messages: Iterable[Message], own_tools: Iterable[str]) -> Iterator[str]:
    """Give what others than people and the model have put into a conversation: results of tools that fetch, and files.

    `own_tools` are those whose results are Parley's own. A file that is sent as it is has no text here: "".
    """
    own = set(own_tools)
    names: dict[str, str] = {}
    for message in messages:
        for call in message.tool_calls:
            names[call.id] = call.name
        for part in message.parts:
            match part:
                case ToolResult(call_id=call_id, content=content, is_error=False) if names.get(call_id) not in own:
                    yield content
                case Text(text=text, foreign=True):
                    yield text
                case File():
                    yield ""


def peoples_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Give what people have written in a conversation."""
    for message in messages:
        for part in message.parts if message.role == "user" else ():
            if isinstance(part, Text) and not part.foreign:
                yield part.text
