"""UI-13: every text for users exists in English, 简体中文 and 繁體中文."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import Path

import polib
import pytest

from tests.support.agreement import agree

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ("zh_Hans", "zh_Hant")
SOURCES = ("agents", "chat", "templates")
# Words that are the same in every language: names, keys and units.
NAMES = {
    "Parley",
    "Ctrl",
    "Shift",
    "Enter",
    "Esc",
    "Alt",
    "Tab",
    "Del",
    "Markdown",
    "JSON",
    "ChatGPT",
    "Claude",
    "Open",
    "WebUI",
    "LibreChat",
    "make",
    "link",
    "kbd",
    "px",
    "API",
    "PDF",
}
# Names of keys and other things in browsers.
TECHNICAL = {
    "Ctrl",
    "Enter",
    "Esc",
    "Escape",
    "Tab",
    "Home",
    "End",
    "Delete",
    "Backspace",
    "Files",
    "Mac",
    "Notification",
    "Range",
    "Highlight",
}
SENTENCE = re.compile(r"[A-Z][a-z]+(?: [\w’'…]+)*[.…!?]?|[a-z]+(?: [a-z]+){2,}[.…!?]?")
REFUSALS = {"ServiceError", "Invalid", "Busy", "Forbidden"}


def catalog(locale: str) -> polib.POFile:
    return polib.pofile(str(ROOT / "locale" / locale / "LC_MESSAGES" / "django.po"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with all texts that the sources mark for translation, made by Django's makemessages."""
    copy = tmp_path_factory.mktemp("sources")
    for source in SOURCES:
        shutil.copytree(ROOT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "locale").mkdir()
    command = [sys.executable, "-m", "django", "makemessages", "--locale", "xx", "--keep-pot", "--no-location"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "tests.support.bare_settings"}
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
    return copy / "locale" / "django.pot"


@pytest.mark.parametrize("locale", LOCALES)
def test_every_marked_word_is_translated(template: Path, locale: str) -> None:
    """UI-13: none is missing, empty or only guessed at, and none is left over."""
    wanted, have = names(polib.pofile(str(template))), catalog(locale)
    file = f"locale/{locale}/LC_MESSAGES/django.po"
    agree(
        names(have.translated_entries()) | (names(have) - wanted),
        wanted,
        missing=f"{file} lacks {{}}: run `make words`, write its msgstr there, and run `make words` again.",
        extra=f"{file} still has {{}}, which no source has: run `make words`.",
    )


def names(entries: Iterable[polib.POEntry]) -> set[str]:
    return {" in the context ".join(repr(part) for part in (each.msgid, each.msgctxt) if part) for each in entries}


@pytest.mark.parametrize("locale", LOCALES)
def test_translations_keep_their_places(locale: str) -> None:
    """UI-13: %(name)s, {name} and tags of the English are in the translation too, and no others."""
    place = re.compile(r"%\(\w+\)[sd]|\{\w+\}|%%|</?\w+>")
    for entry in catalog(locale):
        english = sorted(place.findall(entry.msgid_plural or entry.msgid))
        for form in [entry.msgstr, *entry.msgstr_plural.values()]:
            assert not form or sorted(place.findall(form)) == english, entry.msgid


@pytest.mark.parametrize("locale", LOCALES)
def test_translations_bring_no_markup_of_their_own(locale: str) -> None:
    """Templates trust translations: a quotation mark of a keyboard would end the attribute that it is in."""
    for entry in catalog(locale):
        for text in (entry.msgstr, *entry.msgstr_plural.values()):
            assert {mark for mark in '"<>&' if mark in text} <= {mark for mark in '"<>&' if mark in entry.msgid}, text


@pytest.mark.parametrize("locale", LOCALES)
def test_names_of_users_stand_apart_from_chinese_characters(locale: str) -> None:
    """UI-13: a space is on both sides of a name, as names are in many scripts. Names of kinds of rows are Chinese."""
    beside = re.compile(r"(\{name\}|%\(name\)s)[\u4e00-\u9fff]|[\u4e00-\u9fff](\{name\}|%\(name\)s)")
    entries = [entry for entry in catalog(locale) if entry.msgid != "Add %(name)s"]
    texts = [text for entry in entries for text in (entry.msgstr, *entry.msgstr_plural.values())]
    assert [text for text in texts if beside.search(text) or "……" in text] == []


# Words of the mainland, and those of Taiwan, which the catalog has for the same things.
MAINLAND = {"共享": "分享", "查看": "檢視", "在線：": "在線上：", "識別(?!碼)": "辨識"}


def test_traditional_chinese_is_that_of_taiwan() -> None:
    """UI-13: one thing has one word, and it is that of Taiwan."""
    texts = [text for entry in catalog("zh_Hant") for text in (entry.msgstr, *entry.msgstr_plural.values())]
    found = [f"{word} ({MAINLAND[word]}): {text}" for word in MAINLAND for text in texts if re.search(word, text)]
    assert found == []


@pytest.mark.parametrize("locale", LOCALES)
def test_compiled_catalog_says_what_its_source_says(locale: str) -> None:
    """UI-13: what is committed compiled is of the present source."""
    source = catalog(locale)
    compiled = polib.mofile(str(ROOT / "locale" / locale / "LC_MESSAGES" / "django.mo"))
    assert said(compiled) == said(source), "Run `make words`, and commit the .mo files with the .po files."


def said(entries: Iterable[polib.MOEntry | polib.POEntry]) -> dict[tuple[str | None, str], object]:
    return {(entry.msgctxt, entry.msgid): entry.msgstr_plural or entry.msgstr for entry in entries}


def test_templates_hold_no_words_of_their_own() -> None:
    """UI-13: words in a template are marked for translation."""
    found = {str(path.relative_to(ROOT)): said for path in templates() if (said := list(unmarked(path.read_text())))}
    assert found == {}, f'Mark them for translation, by {{% translate "…" %}}: {found}'


def templates() -> list[Path]:
    return [path for path in (ROOT / "templates").rglob("*.html") if "admin" not in path.parts]


def unmarked(source: str) -> Iterator[str]:
    """Yield the words of a template that users see and that no tag translates."""
    source = re.sub(r"\{% blocktrans(?:late)?\b.*?%\}.*?\{% endblocktrans(?:late)? %\}", "", source, flags=re.S)
    source = re.sub(r"\{% comment %\}.*?\{% endcomment %\}|\{#.*?#\}", "", source, flags=re.S)
    source = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", source, flags=re.S)
    texts = re.findall(r'\b(?:title|aria-label|placeholder|alt|content)="([^"]*)"', source)
    texts = [text for text in texts if "=" not in text and "{" not in text and text != "light dark"]
    texts.append(re.sub(r"<[^>]*>", " ", source))
    for text in texts:
        yield from (word for word in re.findall(r"[A-Za-z]{3,}", unescape(text)) if word not in NAMES)


def test_scripts_hold_no_words_of_their_own() -> None:
    """UI-13: what a script says comes from the page's words."""
    found = {
        path.name: said for path in (ROOT / "static/js").glob("*/*.js") if (said := list(spoken(path.read_text())))
    }
    assert found == {}, f"Put them into templates/chat/words.html, and say `words.NAME` in the script: {found}"


def spoken(script: str) -> Iterator[str]:
    """Yield string literals that look like texts for users: several words, or one that begins a sentence."""
    script = re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", "", script, flags=re.S)
    script = re.sub(r"new Error\([^\n]*", "", script)  # texts for developers
    for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', script):
        if literal not in TECHNICAL and re.fullmatch(
            r"[A-Z][a-z]+(?: [\w’'…]+)*[.…!?]?|[a-z]+(?: [a-z]+){2,}[.…!?]?", literal
        ):
            yield literal


def test_refusals_are_translated() -> None:
    """UI-13: what a service answers to a person goes through gettext."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "chat").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REFUSALS
        for argument in node.args[-1:]
        if isinstance(argument, ast.JoinedStr) or (isinstance(argument, ast.Constant) and " " in str(argument.value))
    ]
    assert found == [], f"Mark the last argument for translation, by _(…): {', '.join(found)}"
