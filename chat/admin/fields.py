"""Form fields for text that users or models wrote, which keep it exactly as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from django import forms
from django.utils.translation import gettext as _


class TextField(forms.CharField):
    """A text field that does not strip its value. It converts the CRLF that browsers submit back to LF."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"strip": False, "required": False, **kwargs})

    def to_python(self, value: Any) -> str:
        return normalize_newlines(super().to_python(value) or "")


class LongTextField(TextField):
    def __init__(self, *, rows: int = 12, **kwargs: Any) -> None:
        attrs = {"rows": rows, "dir": "auto", "class": "big"}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)


class ArgumentsField(TextField):
    """A field for the arguments of a tool call as JSON. Errors contain the line and column, and the input is kept."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"rows": 10, "spellcheck": "false", "class": "big code"}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)

    def clean(self, value: Any) -> Any:
        return _parse(super().clean(value))


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that another user has changed since the form was opened. `present` is its stored value."""

    name: str
    label: str
    present: str


def normalize_newlines(text: str) -> str:
    """Return a text in which all line breaks are LF, as in the values of TextField."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def format_json(value: object) -> str:
    """Format a value as indented JSON for a form field. None becomes an empty object."""
    return json.dumps({} if value is None else value, ensure_ascii=False, indent=2)


def _parse(text: str) -> Any:
    try:
        return json.loads(text or "{}", parse_constant=_reject_constant, object_pairs_hook=_reject_duplicates)
    except json.JSONDecodeError as error:
        message = _("Invalid JSON at line %(line)s, column %(column)s: %(problem)s.")
        details = {"line": error.lineno, "column": error.colno, "problem": error.msg}
        raise forms.ValidationError(message % details, code="json") from error
    except RecursionError as error:
        raise forms.ValidationError(_("The arguments are nested too deeply."), code="json") from error
    except ValueError as error:
        raise forms.ValidationError(_("A number has too many digits."), code="json") from error


def _reject_constant(constant: str) -> NoReturn:
    raise forms.ValidationError(_("JSON doesn’t allow %(constant)s.") % {"constant": constant}, code="json")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. Raise ValidationError if a name occurs twice, because one of its values would be lost."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise forms.ValidationError(_("The name “%(name)s” appears twice.") % {"name": name}, code="json")
        values[name] = value
    return values
