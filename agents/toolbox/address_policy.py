"""The policy for web addresses that a tool may open: the agent's list of hosts, and the source of an address. Pure.

A page, a file or an imported conversation can have instructions. A model that follows them could send data of the
conversation to an attacker, as part of an address. So once such text is in the context, the model may not make up
addresses: a tool opens only those that users have written, and the links in the texts that were read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from yarl import URL

from agents.delegates import is_delegate
from agents.foreign_text import vendor_origin
from agents.messages import File, Message, Text, ToolResult
from agents.toolbox.public_addresses import is_misread
from agents.web_addresses import parse_address

# The most addresses of one host that are compared. No useful page has more.
MOST_CANDIDATES = 5_000
LONGEST_ADDRESS = 4_096
MOST_TRAILING = 6
# The most addresses of a task that are compared, and what may follow one. Otherwise a model could send data out as
# punctuation, of which it is unclear whether it belongs to the address.
MOST_OF_TASK = 50
_USUAL_ENDS = ("", *".,;:!?)*_", ").", "),", "**", "**.")
_HOST = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# The characters that end an address in running text, including Chinese and Japanese punctuation.
_DELIMITERS = re.compile(r"[\s<>\"'`\\^{}|\[\]，。、；：！？（）《》「」『』【】“”‘’]+")
_SCHEME = re.compile(r"(?i)https?://")
# Characters that can follow an address without being part of it.
_TRAILING = ".,;:!?)*_~&"


def host_pattern(text: str) -> str:
    """Return an entry of a list of hosts in the form in which hosts are compared. Raise ValueError if it is invalid.

    An entry is "example.com", or "*.example.com" for all names below it.
    """
    pattern = text.strip().lower().rstrip(".")
    wildcard, name = ("*.", pattern[2:]) if pattern.startswith("*.") else ("", pattern)
    try:
        host = URL.build(scheme="https", host=name).raw_host if name else None
    except ValueError:
        host = None
    if not host or not _HOST.fullmatch(wildcard + host):
        raise ValueError("a host must be a name such as example.com, or *.example.com for all its subdomains")
    return wildcard + host


def is_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Return whether a list allows a host in the form of `host_pattern`. An empty list allows all hosts."""
    return not patterns or any(
        host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern for pattern in patterns
    )


def is_known(target: URL, texts: Iterable[str]) -> bool:
    """Return whether texts contain exactly this address. For an address without path and query, its host is enough."""
    wanted, is_root = _canonical(target), _is_root(target)
    for address in islice(_addresses(target, texts), MOST_CANDIDATES):
        if _canonical(address) == wanted or (is_root and address.raw_host == target.raw_host):
            return True
    return False


def has_new_address(task: str, texts: Iterable[str]) -> bool:
    """Return whether a task has an address that texts do not contain, or so many that it is not checked.

    The agent that gets the task may open each address in it. So words that could be addresses count, too.
    """
    texts = list(texts)
    checked = 0
    for token in _DELIMITERS.split(task):
        for piece in _pieces(token):
            variants = list(_without_trailing(piece))
            if not any(_may_be_public(url.raw_host or "") for url in variants):
                continue
            checked += 1
            rest = piece[len(piece) - len(variants) + 1 :]
            if checked > MOST_OF_TASK or len(piece) > LONGEST_ADDRESS or rest not in _USUAL_ENDS:
                return True
            if not is_known(variants[-1], texts):
                return True
    return False


def _may_be_public(host: str) -> bool:
    """Return whether a host has the form of a name with a top-level domain, or of an IP address."""
    *above, last = host.rstrip(".").split(".")
    return ":" in host or is_misread(host) or (bool(above) and (len(last) > 1 or last.isdigit()))


def is_same_site(one: URL, other: URL) -> bool:
    """Return whether two addresses have the same host, with or without "www."."""
    return _site(one) == _site(other)


def _site(url: URL) -> str:
    return (url.raw_host or "").removeprefix("www.")


def _is_root(url: URL) -> bool:
    return url.raw_path in ("", "/") and not url.raw_query_string and url.port in (80, 443)


def _canonical(url: URL) -> tuple[str | None, int | None, str, str]:
    """Return the parts of an address by which addresses are compared. The scheme and one trailing slash do not count.

    With any number of slashes, the model could send data out as this number.
    """
    port = None if url.port in (80, 443) else url.port
    return url.raw_host, port, url.raw_path.removesuffix("/"), url.raw_query_string


def _addresses(target: URL, texts: Iterable[str]) -> Iterator[URL]:
    """Yield the addresses of a target's host in texts. If it is unclear where one ends, yield all variants."""
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
    """Yield the possible addresses in a token: one address, adjacent addresses, or an address without a scheme."""
    starts = [match.start() for match in _SCHEME.finditer(token)]
    yield token[starts[0] :] if starts else f"http://{token.lstrip('(*')}"
    for start, end in pairwise([*starts, len(token)] if starts else []):
        yield token[start:end]


def _without_trailing(piece: str) -> Iterator[URL]:
    """Yield an address with and without the punctuation at its end, which may belong to the sentence."""
    for _ in range(MOST_TRAILING):
        try:
            url = parse_address(piece)
        except ValueError:
            return
        if url.raw_host:
            yield url
        if piece[-1] not in _TRAILING:
            return
        piece = piece[:-1]


def texts_with_addresses(
    system: str, messages: Sequence[Message], own_tools: Iterable[str], *, is_imported: bool
) -> list[str] | None:
    """Return the texts of a conversation that contain each address that a tool may open, or None if it may open any."""
    foreign = list(foreign_texts(messages, own_tools))
    return [system, *user_texts(messages), *foreign] if foreign or is_imported else None


def foreign_texts(messages: Iterable[Message], own_tools: Iterable[str]) -> Iterator[str]:
    """Yield the texts in a conversation that neither users nor the model wrote: results of tools, and files.

    `own_tools` are the tools whose results are Parley's own text. For a file that is sent unchanged, yield "". Also
    yield "" for the text of another agent that has read text from elsewhere, and for a summary: a model may have made
    up the addresses in it. For a text for which the vendor has read pages, yield the addresses of these pages.
    """
    own = set(own_tools)
    names: dict[str, str] = {}
    for message in messages:
        for call in message.tool_calls:
            names[call.id] = call.name
        for part in message.parts:
            match part:
                case ToolResult(call_id=call_id, origin=origin) if is_delegate(names.get(call_id, "")):
                    if origin:
                        yield ""
                case ToolResult(content=content, origin=origin) if origin:
                    yield content
                case ToolResult(call_id=call_id, content=content, is_error=False) if names.get(call_id) not in own:
                    yield content
                case Text(text=text, foreign=True, origin=origin):
                    yield "" if origin else text
                case Text(sources=sources) if vendor_origin(part):
                    yield " ".join(source.url for source in sources)
                case File():
                    yield ""


def user_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts that users have written in a conversation."""
    for message in messages:
        for part in message.parts if message.role == "user" else ():
            if isinstance(part, Text) and not part.foreign:
                yield part.text
