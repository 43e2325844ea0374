"""Texts for users that are translated when they are shown: a template and the values of its placeholders."""

from __future__ import annotations

from collections.abc import Mapping

from agents.messages import Json


class TranslatableText(str):
    """An English sentence with its `template` ("{name} is out of order.") and the `values` of the placeholders.

    Other code can use it as a plain str. A value can be a TranslatableText, too.
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
    """Return a text for users. Import this function as `_`, so that `make words` finds the templates."""
    texts = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
    return TranslatableText(template, texts)
