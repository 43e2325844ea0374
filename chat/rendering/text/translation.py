"""Texts of rows that Parley wrote itself, in the active language (UI-13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext


def translate(text: str, words: Any) -> str:
    """Translate a row's text. `words` is its stored template with values (`agents.i18n.Words.to_json`).

    An instruction to the model also stores what people read in its place, as `shown` (RUN-15). A text that was edited
    since, or that Parley did not write, is returned as it is.
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
    ):  # hand-made rows, faulty translations
        return text


def _filled_in(words: Mapping[str, Any], *, translate: bool) -> str:
    values = {
        name: _filled_in(value, translate=translate) if isinstance(value, Mapping) else str(value)
        for name, value in words["values"].items()
    }
    template: str = words["template"]
    # gettext changes some texts that it does not know: "" becomes the header of the catalogue, "\r" becomes "\n".
    known = translate and template and "\r" not in template
    return (gettext(template) if known else template).format_map(values)
