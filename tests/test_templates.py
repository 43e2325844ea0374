"""The template loader, which removes line breaks that only format the source of templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Engine, engines
from django.template.loader import render_to_string
from django.utils import translation

from config.templates import condense

TEMPLATES = Path(settings.BASE_DIR) / "templates"


@pytest.mark.parametrize(
    ("source", "condensed"),
    [
        ("<p>\n  Two\n  words\n</p>\n", "<p>Two words</p>"),
        ("<a>x</a>\n<b>y</b>", "<a>x</a><b>y</b>"),
        ('<a>x</a>\n{{ " " }}\n<b>y</b>', '<a>x</a>{{ " " }}<b>y</b>'),
        ("<a>x</a> <b>y</b>", "<a>x</a> <b>y</b>"),
        ("by\n  {{ name }}\n  <b>now</b>", "by {{ name }} <b>now</b>"),
        ("{% if a %}\n  <b>\n    {% trans 'x' %}\n  </b>\n{% endif %}", "{% if a %}<b>{% trans 'x' %}</b>{% endif %}"),
        (
            '<input\n  name="a"\n  {% if a > b %}checked{% endif %}\n>',
            '<input name="a" {% if a > b %}checked{% endif %}>',
        ),
        ('<i\n  x-on:click="a > b"\n></i>', '<i x-on:click="a > b"></i>'),
        ("<pre\n  id='a'\n>\n  kept\n</pre>\n<p>", "<pre id='a'>\n  kept\n</pre><p>"),
        ("<textarea>\n\n{{ text }}</textarea>", "<textarea>\n\n{{ text }}</textarea>"),
        (
            "<b>\n{% blocktrans trimmed %}\n  a\n{% endblocktrans %}\n</b>",
            "<b>{% blocktrans trimmed %}\n  a\n{% endblocktrans %}</b>",
        ),
        ("{# <pre> opens nothing here #}\n<p>\n</p>", "{# <pre> opens nothing here #}<p></p>"),
        ('<a class="x{% if y == "z" %} w{% endif %}"\n  id="q">', '<a class="x{% if y == "z" %} w{% endif %}" id="q">'),
        ("<!doctype html>\n<html>", "<!doctype html><html>"),
        ("1 < 2\n&amp; 3", "1 < 2 &amp; 3"),
    ],
)
def test_breaks_beside_tags_are_dropped(source: str, condensed: str) -> None:
    assert condense(source) == condensed
    assert condense(condensed) == condensed


def test_own_templates_are_condensed_and_those_of_packages_are_not() -> None:
    """Packages may rely on their line breaks."""
    engine = Engine.get_default()
    own, other = (engine.find_template(name)[0].source for name in ("base.html", "admin/login.html"))
    assert own == condense((settings.BASE_DIR / "templates/base.html").read_text())
    assert "\n\n" in other


@pytest.mark.parametrize(("language", "text"), [("en", "a. b"), ("zh-hans", "a.b"), ("zh-hant", "a.b")])
def test_gap_between_sentences_is_that_of_the_language(language: str, text: str) -> None:
    """UI-13: Chinese sentences follow each other without a space."""
    with translation.override(language):
        assert engines["django"].from_string("{% load parley %}a.{% gap %}b").render() == text


def test_constants_have_no_variables() -> None:
    """They are rendered once for everyone. A toast is one without its text, which scripts fill in."""
    sources = {path: path.read_text() for path in TEMPLATES.rglob("*.html")}
    names = {name for source in sources.values() for name in re.findall(r'\{% constant "([^"]+)" %\}', source)}
    assert {"chat/words.html", "toast.html"} <= names
    for name in names - {"toast.html"}:
        source = sources[TEMPLATES / name]
        assert not re.search(r"\{\{|\{% (?:if|for|with|csrf_token|include)\b", source), name
    assert "csrf" not in render_to_string("toast.html")
