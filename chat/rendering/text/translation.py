"""What Parley itself has said in a row, in the language of who reads it now (UI-13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext


def translate(text: str, words: Any) -> str:
    """Say a row's text in the active language. `words` is what agents.i18n.Words made of it.

    A text that is not made of such words is given back as it is: somebody has edited it, or it never was Parley's.
    """
    try:
        return _said(words, translate=True) if _said(words, translate=False) == text else text
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # hand-made, or a slip in a translation
        return text


def _said(words: Mapping[str, Any], *, translate: bool) -> str:
    values = {
        name: _said(value, translate=translate) if isinstance(value, Mapping) else str(value)
        for name, value in words["values"].items()
    }
    template: str = words["template"]
    # What gettext does not know it may change: "" becomes the catalogue's head, "\r" becomes "\n".
    known = translate and template and "\r" not in template
    return (gettext(template) if known else template).format_map(values)
