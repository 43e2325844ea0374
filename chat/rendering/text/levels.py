"""Names of reasoning effort levels, in the language of the reader."""

from __future__ import annotations

from django.utils.translation import pgettext_lazy

LEVELS = {
    "none": pgettext_lazy("reasoning effort", "None"),
    "minimal": pgettext_lazy("reasoning effort", "Minimal"),
    "low": pgettext_lazy("reasoning effort", "Low"),
    "medium": pgettext_lazy("reasoning effort", "Medium"),
    "high": pgettext_lazy("reasoning effort", "High"),
    "xhigh": pgettext_lazy("reasoning effort", "Extra high"),
    "max": pgettext_lazy("reasoning effort", "Max"),
}


def level(effort: str) -> str:
    """Return the name of a level; a level without a name is shown as it is."""
    return str(LEVELS.get(effort, effort))
