"""Clean names of invisible characters, and detect names that look the same. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# The length of the columns for names, in characters.
MAX_LENGTH = 200
# Format and control characters, surrogates, private and unassigned code points, line and paragraph separators.
_UNSEEN_KINDS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Characters that are blank although their category does not show it: fillers, variation selectors, an empty braille
# cell, a null note head.
_BLANKS = {
    *map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159)),
    *map(chr, range(0x180B, 0x1810)),
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
_NON_JOINER, _JOINER, _EMOJI_STYLE = "\u200c", "\u200d", "\ufe0f"
# Scripts in which a joiner or non-joiner changes how a word is written.
_JOINED_SCRIPTS = {"ARABIC", "SYRIAC", "BENGALI", "DEVANAGARI", "KANNADA", "MALAYALAM", "SINHALA", "TAMIL", "TELUGU"}
# Scripts that one word may mix (Unicode TR39, "highly restrictive").
_MIXES = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"},
    {"LATIN", "CJK", "BOPOMOFO"},
    {"LATIN", "CJK", "HANGUL"},
)
# Cyrillic and Greek letters that most typefaces draw like Latin ones, case-folded.
_LATIN_LOOKS = str.maketrans("авегікмнопрстухѕјӏԁһԛԝүαβεικνορτυχγϲϳ", "aberikmhonpctyxsjldhqwyabeikvoptuxycj")


def clean(name: str) -> str:
    """Return a name as it may be shown: composed (NFKC), in one line, without invisible characters.

    Joiners stay where a script or an emoji needs them. The result is "" if nothing visible is left.
    """
    text = unicodedata.normalize("NFKC", name)
    shown = (char if _is_seen(text, place) else " " if char.isspace() else "" for place, char in enumerate(text))
    return " ".join("".join(shown).split())


def lookalike_key(name: str) -> str:
    """Return a key that is the same for names that look the same to a reader."""
    letters = (char for char in clean(name) if char not in (_NON_JOINER, _JOINER, _EMOJI_STYLE))
    return "".join(letters).casefold().translate(_LATIN_LOOKS)


def mixes_scripts(name: str) -> bool:
    """Return whether a word has letters of scripts that are not written together, such as Latin and Cyrillic."""
    return any(not _may_mix(set(map(_script, filter(str.isalpha, word)))) for word in clean(name).split())


def distinct(name: str, username: str, others: Iterable[str]) -> str:
    """Return a user's name, with their user name if one of the `others` looks the same. It fits into its column."""
    key = lookalike_key(name)
    if all(lookalike_key(other) != key for other in others):
        return name[:MAX_LENGTH]
    return f"{name[: MAX_LENGTH - len(username) - 3]} ({username})"


def _is_seen(text: str, place: int) -> bool:
    char, before = text[place], text[place - 1 : place]
    if char == _EMOJI_STYLE:
        return bool(before) and unicodedata.category(before) == "So"
    if char in (_NON_JOINER, _JOINER):
        after = text[place + 1 : place + 2]
        if not before or not after:
            return False
        is_emoji = unicodedata.category(after) == "So" and unicodedata.category(before) in ("So", "Sk", "Mn")
        return (char == _JOINER and is_emoji) or {_script(before), _script(after)} <= _JOINED_SCRIPTS
    return char not in _BLANKS and unicodedata.category(char) not in _UNSEEN_KINDS


def _script(char: str) -> str:
    """Return the first word of a character's Unicode name, which for letters is their script."""
    return unicodedata.name(char, "UNKNOWN").split(maxsplit=1)[0]


def _may_mix(scripts: set[str]) -> bool:
    return len(scripts) <= 1 or any(scripts <= mix for mix in _MIXES)
