"""Texts for users that can be translated later: a template and the values of its placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from agents.messages import Json


class TranslatableText(str):
    """A sentence in English that remembers its `template` ("{name} is out of order.") and the `values` in it.

    It is a plain str for other code. Values can be TranslatableText themselves.
    """

    template: str
    values: Mapping[str, str]

    def __new__(cls, template: str, values: Mapping[str, str]) -> TranslatableText:
        text = super().__new__(cls, template.format_map(values))
        text.template = template
        text.values = values
        return text

    def to_json(self) -> Json:
        """Return the form that rows store; `chat.rendering.text.translation` translates it for a reader."""
        values = {
            name: value.to_json() if isinstance(value, TranslatableText) else value
            for name, value in self.values.items()
        }
        return {"template": self.template, "values": values}


def gettext(template: str, **values: object) -> TranslatableText:
    """Return a text for users. Import it as `_`, by which `make words` finds the templates."""
    texts = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
    return TranslatableText(template, texts)
