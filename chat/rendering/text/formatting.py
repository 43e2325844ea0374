"""Formatted values for pages: times, durations, token counts, effort levels, avatars (UI-02, UI-04, UI-08)."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlsplit
from zlib import crc32

from django.utils import timezone
from django.utils.formats import get_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.prices import Money

COLORS = 12
EFFORT_LEVELS = {
    "none": pgettext_lazy("reasoning effort", "None"),
    "minimal": pgettext_lazy("reasoning effort", "Minimal"),
    "low": pgettext_lazy("reasoning effort", "Low"),
    "medium": pgettext_lazy("reasoning effort", "Medium"),
    "high": pgettext_lazy("reasoning effort", "High"),
    "xhigh": pgettext_lazy("reasoning effort", "Extra high"),
    "max": pgettext_lazy("reasoning effort", "Max"),
}


def moment(at: datetime, form: str = "medium") -> SafeString:
    """Return a `<time>` element. static/js/ui/time.js writes it in the viewer's time zone and clock format.

    `form` is "medium" or "seconds". Until the script has run, the text includes its time zone.
    """
    text = f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}"
    return format_html('<time datetime="{}" data-form="{}">{}</time>', at.isoformat(), form, text)


def host(url: str) -> str:
    """Return the host of a web address without "www.", or "" if there is none."""
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def money(cost: Money) -> str:
    """Format as `1.25 USD`. Amounts below 0.1 get four digits, so that a short answer does not cost `0.00`."""
    digits = 2 if cost.amount >= Decimal("0.1") or not cost.amount else 4
    least = Decimal(1).scaleb(-digits)
    if 0 < cost.amount < least:
        return f"< {number_format(least, digits)} {cost.currency}"
    return f"{number_format(cost.amount, digits)} {cost.currency}"


def duration(milliseconds: int) -> str:
    """Format as `328ms`, `1.2s` (under ten seconds), `35s` or `1m 23s`, never rounded up (UI-02)."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 10_000:
        return f"{milliseconds // 100 / 10:.1f}s"
    seconds = milliseconds // 1000
    return f"{seconds}s" if seconds < 60 else f"{seconds // 60}m {seconds % 60}s"


def spelled_duration(seconds: float) -> str:
    """Format as `1 minute 30 seconds` or `2 hours 5 seconds`, without parts that are zero (UI-04)."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (
        hours and ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours},
        minutes and ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes},
        rest and ngettext("%(count)d second", "%(count)d seconds", rest) % {"count": rest},
    )
    return " ".join(part for part in parts if part) or _("0 seconds")


def time_left(until: datetime) -> str:
    """Format the time until a moment as `7 days`, `3 hours` or `1 minute`, rounded to the nearest unit."""
    minutes = max(1, round((until - timezone.now()).total_seconds() / 60))
    hours, days = round(minutes / 60), round(minutes / 60 / 24)
    if hours >= 24:
        return ngettext("%(count)d day", "%(count)d days", days) % {"count": days}
    if minutes >= 60:
        return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}
    return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}


def tokens(count: int) -> str:
    """Format as `950`, `28.5K` or `1.2M` (UI-08)."""
    for limit, divisor, unit in ((1000, 1, ""), (999_950, 1000, "K")):
        if count < limit:
            return f"{count / divisor:.1f}{unit}" if unit else str(count)
    return f"{count / 1_000_000:.1f}M"


def count(number: int) -> str:
    """Format as `15,234`, with digits grouped as in the active language, or by commas if Django has no separator."""
    return number_format(number, force_grouping=True) if get_format("THOUSAND_SEPARATOR") else f"{number:,}"


def window(count: int) -> str:
    """Format the size of a context window as `16K`, `200K`, `1M` or `1.05M`."""
    thousands = round(count / 1000)
    return f"{thousands}K" if thousands < 1000 else f"{count / 1_000_000:.3g}M"


def initials(name: str) -> str:
    """Return two letters for an avatar, one in scripts in which a letter is a word, or the first emoji."""
    words = [word for word in name.split() if word[0].isalnum()]
    if not words:
        return next((letter for letter in name if unicodedata.category(letter) == "So"), "?")
    if not words[0].isascii():
        return words[0][0].upper()
    second = words[-1][0] if len(words) > 1 else words[0][1:2]
    return (words[0][0] + second).upper()


def agent_initials(name: str) -> str:
    """Return two letters for the mark of a model or agent, such as “CS” for “claude-sonnet-4-6”."""
    return initials(" ".join(word for word in re.split(r"[\s._/:-]+", name) if not word.isdigit()))


def color(name: str) -> str:
    """Return the CSS class of a name's avatar. It is always the same for a name."""
    return f"c{crc32(name.encode()) % COLORS}"


def effort_level(effort: str) -> str:
    """Return the name of a reasoning effort level in the active language. Return an unknown level unchanged."""
    return str(EFFORT_LEVELS.get(effort, effort))
