"""Figures as a person reads them: durations, token counts and what stands for a name (UI-02, UI-04, UI-08)."""

from __future__ import annotations

from zlib import crc32

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

COLOURS = 12


def duration(milliseconds: int) -> str:
    """Under a second `328ms`, under ten `1.2s`, under a minute `35s`, else `1m 23s` (UI-02). Cut, never rounded up."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 10_000:
        return f"{milliseconds // 100 / 10:.1f}s"
    seconds = milliseconds // 1000
    return f"{seconds}s" if seconds < 60 else f"{seconds // 60}m {seconds % 60}s"


def spelled_duration(seconds: float) -> str:
    """`1 minute 30 seconds`, `2 hours 5 seconds`: parts that are nought are left out (UI-04)."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (
        hours and ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours},
        minutes and ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes},
        rest and ngettext("%(count)d second", "%(count)d seconds", rest) % {"count": rest},
    )
    return " ".join(part for part in parts if part) or _("0 seconds")


def tokens(count: int) -> str:
    """Format a number of tokens: `950`, `28.5K`, `1.2M` (UI-08)."""
    for limit, divisor, unit in ((1000, 1, ""), (999_950, 1000, "K")):
        if count < limit:
            return f"{count / divisor:.1f}{unit}" if unit else str(count)
    return f"{count / 1_000_000:.1f}M"


def count(number: int) -> str:
    """`15,234`, as the reader's language groups digits."""
    return number_format(number, force_grouping=True)


def window(count: int) -> str:
    """A context window: `16K`, `200K`, `1M`, `1.05M`."""
    thousands = round(count / 1000)
    return f"{thousands}K" if thousands < 1000 else f"{count / 1_000_000:.3g}M"


def initials(name: str) -> str:
    """Two letters for an avatar; one for scripts where a letter is a word."""
    words = [word for word in name.split() if word[0].isalnum()]
    if not words:
        return "?"
    if not words[0].isascii():
        return words[0][0].upper()
    second = words[-1][0] if len(words) > 1 else words[0][1:2]
    return (words[0][0] + second).upper()


def colour(name: str) -> str:
    """Name the avatar class that goes with a name: the same one everywhere, for ever."""
    return f"c{crc32(name.encode()) % COLOURS}"
