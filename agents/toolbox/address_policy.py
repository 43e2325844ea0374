"""The policy for web addresses that a tool may open: the agent's list of hosts, and the source of an address. Pure.

A page, a file or an imported conversation can have instructions. A model that follows them could send data of the
conversation to an attacker, as part of an address. So once such text is in the context, the model may not make up
addresses: a tool opens only those that users have written, and the links in the texts that were read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from urllib.parse import unquote

from yarl import URL

from agents.delegates import is_delegate
from agents.foreign_text import vendor_origin
from agents.messages import File, Json, Message, Text, ToolCall, ToolResult
from agents.toolbox.public_addresses import is_misread
from agents.web_addresses import parse_address

# The most addresses of one host that are compared. No useful page has more.
MAX_CANDIDATES = 5_000
MAX_ADDRESS_LENGTH = 4_096
MAX_TRAILING = 6
# The most addresses of a task or a call that are compared, and what may follow one. Otherwise a model could send data
# out as punctuation, of which it is unclear whether it belongs to the address.
MAX_OF_TASK = 50
_USUAL_ENDS = ("", *".,;:!?)*_", ").", "),", "**", "**.")
_HOST = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# The characters that end an address in running text, including Chinese and Japanese punctuation.
_DELIMITERS = re.compile(r"[\s<>\"'`\\^{}|\[\]，。、；：！？（）《》「」『』【】“”‘’]+")
_SCHEME = re.compile(r"(?i)https?://")
# Characters that can follow an address without being part of it.
_TRAILING = ".,;:!?)*_~&"
# The words in names of arguments whose values are addresses or hosts: image_url, baseUrl, hostname, but not security.
_WORDS = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")
_HOST_NAME = re.compile(r"(?i).*(url|host|domain).*|.*(uri|link|href)s?|(web)?sites?")
_ADDRESS_NAME = re.compile(r"(?i).*address(es)?")
_EMAIL = re.compile(r"[^\s@/]+@[^\s@/]+")
# The beginning of an address of any kind.
_ANY_SCHEME = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{0,20}://")
# The tool that opens addresses. It repeats no other words of the model.
WEB_FETCH = "web_fetch"
# The tools of the session's folder, in which the model can compose any text and read it again.
FOLDER_TOOLS = {"bash", "python", "read_file", "write_file", "edit_file", "list_files", "search_files"}
_WORKSPACE = "/workspace"
_ATTACHMENTS = f"{_WORKSPACE}/attachments/"


@dataclass(frozen=True, slots=True)
class ModelText:
    """Text that the model has written in the arguments of a call. The results of tools can repeat it."""

    text: str


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


def is_known(target: URL, texts: Iterable[str | ModelText]) -> bool:
    """Return whether texts contain exactly this address, and the model has not written it in a call before them.

    For an address without path and query, its host is enough.
    """
    return _are_known([target], texts)


def _are_known(targets: Sequence[URL], texts: Iterable[str | ModelText]) -> bool:
    """Return whether all addresses are known (`is_known`). Read the texts once."""
    # Where each host and address is first, in the texts that were read and in those of the model.
    read: dict[object, int] = {}
    written: dict[object, int] = {}
    for place, (address, is_by_model) in enumerate(_addresses(targets, texts)):
        found, key = (written, _folded(address)) if is_by_model else (read, _canonical(address))
        found.setdefault(key, place)
        found.setdefault(address.raw_host, place)
    for target in targets:
        is_root = _is_root(target)
        first = read.get(target.raw_host if is_root else _canonical(target))
        by_model = written.get(target.raw_host if is_root else _folded(target))
        if first is None or (by_model is not None and by_model < first):
            return False
    return True


def has_new_address(task: str, texts: Iterable[str | ModelText]) -> bool:
    """Return whether a task has an address that texts do not contain, or too many to be checked.

    The agent that gets the task may open each address in it. So words that could be addresses count, too.
    """
    return _is_one_new(_addresses_in(task, counts_hosts=True), texts)


def arguments_have_new_address(arguments: Json, texts: Iterable[str | ModelText]) -> bool:
    """Return whether the arguments of a call have an address that texts do not contain, or too many to be checked.

    An argument that begins like an address is compared as a whole, because its tool may open it with all its words.
    """
    named = _named_texts(arguments)
    return _is_one_new((found for name, text in named for found in _addresses_of_argument(name, text)), texts)


def _is_one_new(found: Iterable[URL | None], texts: Iterable[str | ModelText]) -> bool:
    """Return whether one of the addresses is not known. None is an address that cannot be known."""
    targets: list[URL] = []
    for target in found:
        if target is None or len(targets) == MAX_OF_TASK:
            return True
        targets.append(target)
    return bool(targets) and not _are_known(targets, texts)


def _addresses_in(text: str, *, counts_hosts: bool) -> Iterator[URL | None]:
    """Yield the addresses in a text, and None for one that is too long or has unusual punctuation at its end.

    Without `counts_hosts`, leave out words that are only a host, such as node.js or main.py:42.
    """
    for token in _DELIMITERS.split(text):
        for piece in _pieces(token):
            variants = list(_without_trailing(piece))
            if not any(_may_be_public(url.raw_host or "") for url in variants):
                continue
            if not (counts_hosts or _SCHEME.search(token) or any(map(_has_path, variants))):
                continue
            rest = piece[len(piece) - len(variants) + 1 :]
            yield variants[-1] if len(piece) <= MAX_ADDRESS_LENGTH and rest in _USUAL_ENDS else None


def _addresses_of_argument(name: str, text: str) -> Iterator[URL | None]:
    """Yield the addresses in an argument, and None for one that cannot be known."""
    text = _ANY_SCHEME.sub("http://", text.strip())
    if not _SCHEME.match(text):
        yield from _addresses_in(text, counts_hosts=_may_be_host(name, text))
        return
    try:
        url = parse_address(text)
    except ValueError:
        yield None
        return
    if _may_be_public(url.raw_host or ""):
        yield url if url.raw_user is None and len(text) <= MAX_ADDRESS_LENGTH else None


def _may_be_host(name: str, text: str) -> bool:
    """Return whether the name of an argument is one for a host. An "address" may also be an email address."""
    words = _WORDS.split(name)
    is_address = any(map(_ADDRESS_NAME.fullmatch, words)) and not _EMAIL.fullmatch(text)
    return is_address or any(map(_HOST_NAME.fullmatch, words))


def _may_be_public(host: str) -> bool:
    """Return whether a host has the form of a name with a top-level domain, or of an IP address.

    A name with an empty label, such as the folder .github, is that of no server.
    """
    *above, last = host.rstrip(".").split(".")
    is_name = bool(above) and all(above) and (len(last) > 1 or last.isdigit())
    return ":" in host or is_misread(host) or is_name


def is_same_site(one: URL, other: URL) -> bool:
    """Return whether two addresses have the same host, with or without "www."."""
    return _site(one) == _site(other)


def _site(url: URL) -> str:
    return (url.raw_host or "").removeprefix("www.")


def _has_path(url: URL) -> bool:
    return url.raw_path not in ("", "/") or bool(url.raw_query_string)


def _is_root(url: URL) -> bool:
    return not _has_path(url) and url.port in (80, 443)


def _canonical(url: URL) -> tuple[str | None, int | None, str, str]:
    """Return the parts of an address by which addresses are compared. The scheme and one trailing slash do not count.

    With any number of slashes, the model could send data out as this number.
    """
    port = None if url.port in (80, 443) else url.port
    return url.raw_host, port, url.raw_path.removesuffix("/"), url.raw_query_string


def _folded(url: URL) -> tuple[str | None, str, str]:
    """Return the parts of an address by which addresses are compared that a tool may have changed in its form."""
    path, query = (unquote(part).casefold() for part in (url.raw_path, url.raw_query_string))
    return url.raw_host, path.removesuffix("/"), query


def _addresses(targets: Iterable[URL], texts: Iterable[str | ModelText]) -> Iterator[tuple[URL, bool]]:
    """Yield the addresses of the targets' hosts in texts, and whether the model has written them.

    If it is unclear where an address ends, yield all variants.
    """
    hosts = {host.lower() for target in targets for host in (target.raw_host, target.host) if host}
    return islice(_all_addresses(hosts, texts), MAX_CANDIDATES * len(hosts))


def _all_addresses(hosts: set[str], texts: Iterable[str | ModelText]) -> Iterator[tuple[URL, bool]]:
    for each in texts:
        is_by_model = isinstance(each, ModelText)
        text = each.text if isinstance(each, ModelText) else each
        folded = text.lower()
        present = {host for host in hosts if host in folded}
        for token in _DELIMITERS.split(text) if present else ():
            for piece in _pieces(token):
                folded = piece[:MAX_ADDRESS_LENGTH].lower()
                if len(piece) <= MAX_ADDRESS_LENGTH and any(host in folded for host in present):
                    yield from ((address, is_by_model) for address in _without_trailing(piece))


def _pieces(token: str) -> Iterator[str]:
    """Yield the possible addresses in a token: one address, adjacent addresses, or an address without a scheme."""
    starts = [match.start() for match in _SCHEME.finditer(token)]
    yield token[starts[0] :] if starts else f"http://{token.lstrip('(*')}"
    for start, end in pairwise([*starts, len(token)] if starts else []):
        yield token[start:end]


def _without_trailing(piece: str) -> Iterator[URL]:
    """Yield an address with and without the punctuation at its end, which may belong to the sentence."""
    for _ in range(MAX_TRAILING):
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
) -> list[str | ModelText] | None:
    """Return the texts of a conversation that contain each address that a tool may open, or None if it may open any.

    The texts of the model since the first foreign text are among them: an address that it has made up does not become
    known because a tool repeats it. Before, nothing could have asked it to put data in an address. What users have
    approved counts as given by them.
    """
    texts = list(_texts_of_tools(messages, own_tools))
    first = 0 if is_imported else next((place for place, text in enumerate(texts) if isinstance(text, str)), None)
    if first is None:
        return None
    before = [text.text for text in texts[:first] if isinstance(text, ModelText)]
    approved = [_words_of(call) for message in messages for call in message.tool_calls if call.approved]
    return [system, *user_texts(messages), *approved, *before, *texts[first:]]


def foreign_texts(messages: Iterable[Message], own_tools: Iterable[str]) -> Iterator[str]:
    """Yield the texts in a conversation that neither users nor the model wrote: results of tools, and files.

    `own_tools` are the tools whose results are Parley's own text. For a file that is sent unchanged, yield "". Also
    yield "" for texts whose addresses a model may have made up: the text of another agent that has read text from
    elsewhere, a summary, and what the tools of the session's folder return, except a file that users attached. For a
    text for which the vendor has read pages, yield the addresses of these pages.
    """
    return (text for text in _texts_of_tools(messages, own_tools) if isinstance(text, str))


def _texts_of_tools(messages: Iterable[Message], own_tools: Iterable[str]) -> Iterator[str | ModelText]:
    """Yield the foreign texts, and the texts of the model that tools can repeat, in their order."""
    own = set(own_tools)
    calls: dict[str, ToolCall] = {}
    for message in messages:
        for call in message.tool_calls:
            calls[call.id] = call
        for part in message.parts:
            match part:
                case ToolResult(call_id=call_id) as result:
                    if (text := _text_of_result(result, calls.get(call_id), own)) is not None:
                        yield text
                case Text(text=text, foreign=True, origin=origin):
                    yield "" if origin else text
                case Text(sources=sources) if vendor_origin(part):
                    yield " ".join(source.url for source in sources)
                case File():
                    yield ""
        # After the parts: with the vendor's own search, the model has read pages before it makes a call.
        for call in message.tool_calls:
            if call.name != WEB_FETCH and (words := _words_of(call)):
                yield ModelText(words)


def _text_of_result(result: ToolResult, call: ToolCall | None, own_tools: set[str]) -> str | None:
    """Return the foreign text of a result, "" if a model may have made up the addresses in it, or None without one."""
    name = call.name if call else ""
    is_foreign = bool(result.origin) or (not result.is_error and name not in own_tools and not is_delegate(name))
    if not is_foreign:
        return None
    is_of_model = is_delegate(name) or (name in FOLDER_TOOLS and not (call and _reads_attachment(call)))
    return "" if is_of_model else result.content


def _reads_attachment(call: ToolCall) -> bool:
    """Return whether a call reads a file that users attached. The model cannot change these files."""
    path = posixpath.normpath(posixpath.join(_WORKSPACE, str(call.arguments.get("path", ""))))
    return call.name == "read_file" and path.startswith(_ATTACHMENTS)


def _words_of(call: ToolCall) -> str:
    """Return all texts in the arguments of a call."""
    return "\n".join(text for _, text in _named_texts(call.arguments))


def _named_texts(arguments: Json) -> Iterator[tuple[str, str]]:
    """Yield all texts in the arguments of a call, each with the name of its argument. Names are texts, too."""
    waiting: list[tuple[str, object]] = [("", arguments)]
    while waiting:
        name, value = waiting.pop()
        match value:
            case str():
                yield name, value
            case dict():
                waiting += [*(("", key) for key in value), *((key, each) for key, each in value.items())]
            case list():
                waiting += [(name, each) for each in value]


def user_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts that users have written in a conversation."""
    for message in messages:
        for part in message.parts if message.role == "user" else ():
            if isinstance(part, Text) and not part.foreign:
                yield part.text
