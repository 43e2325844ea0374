"""Split texts into passages, and into the words by which passages are found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Characters of a passage. This is enough for an answer, and several passages still fit into a result.
MAX_LENGTH = 1_500
# A heading starts a new passage if the passage before it has at least this many characters.
MIN_BEFORE_HEADING = 400
# In characters. A longer word is data rather than language.
MAX_WORD_LENGTH = 60
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_HEADING = re.compile(r"#{1,6} ")
# The places where a paragraph that is too long may end. The best place comes first.
_ENDS = (re.compile(r"\n"), re.compile(r"(?<=[.!?;])\s|(?<=[。！？；])"), re.compile(r"\s"))
# Scripts without spaces between words, or with attached endings. Pairs of their characters are indexed as words.
_PAIRED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_PAIRED += "\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+")
_STARTS_PAIRED = re.compile(rf"[{_PAIRED}]")
_ACCENTS = re.compile("[\u0300-\u036f]")


def split(text: str) -> Iterator[str]:
    """Yield the passages of a text, of at most MAX_LENGTH characters each. Keep paragraphs whole if possible."""
    passage = ""
    for paragraph in _BLANK_LINES.split(text.strip()):
        is_new_part = bool(_HEADING.match(paragraph)) and len(passage) >= MIN_BEFORE_HEADING
        if passage and (is_new_part or len(passage) + 2 + len(paragraph) > MAX_LENGTH):
            yield passage.rstrip()
            passage = ""
        passage = f"{passage}\n\n{paragraph}" if passage else paragraph
        while len(passage) > MAX_LENGTH:
            end = _end_in(passage)
            yield passage[:end].rstrip()
            passage = passage[end:].lstrip()
    if passage.strip():
        yield passage.rstrip()


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, as they are searched: in lower case and without accents."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    found = list[str]()
    for word in _WORD.findall(unicodedata.normalize("NFC", plain)):
        if is_paired(word):
            found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
        elif len(word) <= MAX_WORD_LENGTH:
            found.append(word)
    return found


def indexed_words_of(text: str) -> list[str]:
    """Return the words of a text in order, as they are indexed.

    A search for a single character finds the pairs that begin with it. So the last one of each row is a word, too.
    """
    found = list[str]()
    words = words_of(text)
    for word, following in zip(words, [*words[1:], ""], strict=False):  # without words, only the second has one
        found.append(word)
        if len(word) == 2 and is_paired(word) and not following.startswith(word[1]):
            found.append(word[1])
    return found


def is_paired(word: str) -> bool:
    """Return whether a word is in a script of which pairs of characters are indexed."""
    return bool(_STARTS_PAIRED.match(word))


def _end_in(passage: str) -> int:
    """Return the index at which a passage that is too long is cut: the last good place in its second half, if any."""
    for pattern in _ENDS:
        places = [found.end() for found in pattern.finditer(passage, MAX_LENGTH // 2, MAX_LENGTH)]
        if places:
            return places[-1]
    return MAX_LENGTH
