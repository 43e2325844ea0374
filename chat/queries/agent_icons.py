"""Icons that an agent or one of its opening prompts can have, with their names for people."""

from __future__ import annotations

from typing import get_args

from django.utils.translation import gettext_lazy

from agents.config import PromptIcon

ICONS: tuple[PromptIcon, ...] = get_args(PromptIcon)
ICON_NAMES = {
    "calculator": gettext_lazy("Calculator"),
    "clock": gettext_lazy("Clock"),
    "code": gettext_lazy("Code"),
    "file-text": gettext_lazy("Document"),
    "globe": gettext_lazy("Globe"),
    "image": gettext_lazy("Picture"),
    "lightbulb": gettext_lazy("Light bulb"),
    "list-checks": gettext_lazy("Checklist"),
    "message-square": gettext_lazy("Speech bubble"),
    "search": gettext_lazy("Magnifying glass"),
    "sparkles": gettext_lazy("Sparkles"),
    "square-pen": gettext_lazy("Pen"),
    "table": gettext_lazy("Table"),
    "terminal": gettext_lazy("Terminal"),
    "users": gettext_lazy("People"),
    "wrench": gettext_lazy("Wrench"),
}
