"""Translate texts of rows that Parley wrote itself into the active language (UI-13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext

from agents.i18n import TranslatableText
from chat.rendering.text.earlier_texts import PRESENT


def translate(text: str, words: Any) -> str:
    """Translate a row's text. `words` is its stored template with values (`agents.i18n.TranslatableText.to_json`).

    An instruction to the model also stores the text that users see instead, as `shown` (RUN-15). A text that was edited
    later, or that Parley did not write, is returned unchanged.
    """
    try:
        if _filled_in(words, translate=False) != text:
            return text
        return _filled_in(words.get("shown") or words, translate=True)
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
    ):  # rows that were not written by Parley, faulty translations
        return text


def translated(text: str) -> str:
    """Translate a text that is not in a row, if it is a TranslatableText."""
    return translate(text, text.to_json()) if isinstance(text, TranslatableText) else text


def _filled_in(words: Mapping[str, Any], *, translate: bool) -> str:
    values = {
        name: _filled_in(value, translate=translate) if isinstance(value, Mapping) else str(value)
        for name, value in words["values"].items()
    }
    template: str = words["template"]
    # gettext changes some texts that it does not contain: "" becomes the catalog's header, and "\r" becomes "\n".
    if translate and template and "\r" not in template:
        template = gettext(PRESENT.get(template, template))
    return template.format_map(values)
