"""Form fields for what people write: exactly as they wrote it, with what stood there before them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext as _


class WrittenField(forms.CharField):
    """Text as it was written. Browsers end lines with CRLF, whatever was given to them: that is taken back."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"strip": False, "required": False, **kwargs})

    def to_python(self, value: Any) -> str:
        return lines(super().to_python(value) or "")


class BigField(WrittenField):
    """Text in a big box."""

    def __init__(self, *, rows: int = 12, **kwargs: Any) -> None:
        attrs = {"rows": rows, "dir": "auto", "class": "big"}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)


class ArgumentsField(WrittenField):
    """A tool call's arguments as JSON; what cannot be read is said with its place, and stays in the box."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"rows": 10, "spellcheck": "false", "class": "big code"}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)

    def clean(self, value: Any) -> Any:
        return _read(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Where lines break is no change."""
        try:
            return json.dumps(self.clean(initial)) != json.dumps(self.clean(data))
        except forms.ValidationError:
            return True


@dataclass(frozen=True, slots=True)
class Clash:
    """A field that somebody else has changed since a form was opened: what stands in it now."""

    name: str
    label: str
    present: str


def lines(text: str) -> str:
    """A text as a box gives it back."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def pretty(arguments: object) -> str:
    """Write arguments for the box."""
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False, indent=2)


def _read(text: str) -> Any:
    try:
        return json.loads(text or "{}", parse_constant=_refuse, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        words = _("Invalid JSON at line %(line)s, column %(column)s: %(problem)s.")
        where = {"line": error.lineno, "column": error.colno, "problem": error.msg}
        raise forms.ValidationError(words % where, code="json") from error
    except RecursionError as error:
        raise forms.ValidationError(_("The arguments are nested too deeply."), code="json") from error
    except ValueError as error:
        raise forms.ValidationError(_("A number has too many digits."), code="json") from error


def _refuse(constant: str) -> NoReturn:
    raise forms.ValidationError(_("JSON doesn’t allow %(constant)s.") % {"constant": constant}, code="json")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: one of its values would be lost without a word."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise forms.ValidationError(_("The name “%(name)s” appears twice.") % {"name": name}, code="json")
        found[name] = value
    return found
