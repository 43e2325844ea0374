"""The pages that tools find, with the numbers by which answers cite them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count

from agents.knowledge import is_address
from agents.messages import Message, Source, Text
from agents.safe_text import clean

MAX_TITLE_LENGTH = 200
MAX_ADDRESS_LENGTH = 2_000
# The most sources of one turn that are kept for its answers.
MAX_SOURCES = 200
NUMBER = r"[1-9][0-9]{0,2}"
# What an answer writes to cite pages: a number in square brackets, or several with commas.
CITATION = rf"\[({NUMBER}(?:[,，、] ?{NUMBER}){{0,19}})\]"
# Code and formulas, in which square brackets cite nothing. In "$5 [1] or US$ 6", the dollars are prices.
NOT_CITING = (
    r"(?ms:^[ >]*(?:```|~~~).*?(?:^[ >]*(?:```|~~~)|\Z)|`[^`\n]+`"
    r"|(?<![\\$])\$\$(?:\\.|[^\\$`])+?\$\$|\\\((?:[^\\`]|\\[^()])+?\\\)|\\\[(?:[^\\`]|\\[^\[\]])+?\\\]"
    r"|(?<![\\$A-Za-z0-9])\$(?![\s$])(?:\\.|(?![A-Za-z]{2} [A-Za-z]{2})[^\\$`\n])+?(?<!\s)\$(?![0-9A-Za-z$]))"
)
# What does not cite, or a citation with its numbers as group 1.
CITING = re.compile(f"{NOT_CITING}|{CITATION}")
_NUMBER = re.compile(NUMBER)


class SourceNumbers:
    """The numbers of pages, in the order in which they are found. A page keeps its number in the whole conversation.

    Texts may cite pages whose results are not in the messages, because a summary replaces them or another agent found
    them. New pages do not get these numbers, so that a model which repeats such a text does not cite another page.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages = messages
        known = [source for message in messages for result in message.tool_results for source in result.sources]
        self._by_url = {source.url: source for source in known}
        self._last = max((source.number for source in known), default=0)

    def number(self, title: str, url: str, *aliases: str) -> Source:
        """Return the source of a page, with a new number if the page is new. `aliases` are other addresses of it."""
        found = next((self._by_url[each] for each in (url, *aliases) if each in self._by_url), None)
        if found is None:
            self._last = next(number for number in count(self._last + 1) if number not in self._cited)
            found = Source(self._last, clean(title or url)[:MAX_TITLE_LENGTH], url)
            self._by_url[url] = found
        return found

    @cached_property
    def _cited(self) -> set[int]:
        """The numbers that are cited by the model, by other agents that have read pages, and by summaries."""
        texts = (
            part.text
            for message in self._messages
            for part in message.parts
            if isinstance(part, Text) and (message.role == "assistant" or part.origin)
        )
        return {number for text in texts for number in cited_numbers(text)}


def is_web_address(url: object) -> bool:
    """Return whether this is a web address that a link may have."""
    return (
        isinstance(url, str)
        and len(url) <= MAX_ADDRESS_LENGTH
        and bool(re.match(r"https?://[^\s/]", url, re.IGNORECASE))
        and not re.search(r"[\s\x00-\x1f\ud800-\udfff<>\"]", url)
    )


def is_source_address(url: object) -> bool:
    """Return whether a source can have this address: a web address, or that of a passage of knowledge."""
    return is_web_address(url) or is_address(url)


def cited_source(title: object, url: object) -> Source | None:
    """Return the source that a vendor names, with the number 0, or None if a source cannot have its address."""
    if not is_source_address(url):
        return None
    name = clean(" ".join(title.split())) if isinstance(title, str) else ""
    return Source(0, (name or str(url))[:MAX_TITLE_LENGTH], str(url))


def cited_numbers(text: str) -> set[int]:
    """Return the numbers that a text cites in the form [1] or [1, 2], outside code and formulas."""
    return {int(number) for numbers in CITING.findall(text) for number in _NUMBER.findall(numbers)}


def replaced_citation(numbers: str, references: Mapping[int, str]) -> str | None:
    """Return the references for the numbers of one citation, or None if none of them has a reference.

    A number without a reference gets square brackets of its own.
    """
    cited = [int(number) for number in _NUMBER.findall(numbers)]
    if not references.keys() & set(cited):
        return None
    return "".join(references.get(number, f"[{number}]") for number in cited)


def cited(text: str, sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources that a text cites."""
    numbers = cited_numbers(text)
    return tuple(source for source in sources if source.number in numbers)


def read_sources(stored: object) -> tuple[Source, ...]:
    """Return the valid sources in a JSON list. Skip all others, because the list may be imported or edited."""
    found = []
    for each in stored[:MAX_SOURCES] if isinstance(stored, list) else ():
        number = each.get("number") if isinstance(each, dict) else None
        source = cited_source(each.get("title"), each.get("url")) if isinstance(number, int) and number > 0 else None
        if source is not None and isinstance(number, int):
            found.append(replace(source, number=number))
    return tuple(found)
