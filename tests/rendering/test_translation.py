"""Readers get the rows that Parley itself has written in their own language."""

from __future__ import annotations

from string import Formatter

import pytest
from django.utils import translation
from hypothesis import example, given
from hypothesis import strategies as st

from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.providers.http.errors import Endpoint, ErrorBody
from chat.models import ChatMessage
from chat.rendering.messages.frames import message_html
from chat.rendering.text.earlier_texts import PRESENT
from chat.rendering.text.translation import translate
from chat.runs.reducer import RESUME_NOTE, RESUME_NOTE_SHOWN
from chat.snapshots import MessageSnapshot

BUSY = Endpoint("claude", "https://api.example.com").refused(ErrorBody("slow down"), "m", 429, {"retry-after": "8"})
CHINESE = "已达到 claude 的速率限制。请在 8 秒后重试。 对方说明：slow down"
JSON = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner))


def test_error_is_said_in_the_reader_s_language() -> None:
    """UI-13, RUN-10: the translated error contains the server's untranslated message."""
    words = BUSY.message
    assert isinstance(words, TranslatableText)
    with translation.override("zh-hans"):
        assert translate(str(BUSY), words.to_json()) == CHINESE
    with translation.override("en"):
        assert translate(str(BUSY), words.to_json()) == str(BUSY)


@pytest.mark.parametrize(("kind", "role"), [("error", ""), ("text", "system")])
def test_row_is_drawn_in_the_reader_s_language(kind: str, role: str) -> None:
    """UI-13: errors, and notes that Parley sends to the model."""
    assert isinstance(BUSY.message, TranslatableText)
    row = ChatMessage(session_id="s_1", type=kind, role=role, sequence=1, text=str(BUSY))
    row.provider_data = {"words": BUSY.message.to_json()}
    with translation.override("zh-hans"):
        assert CHINESE in message_html(MessageSnapshot.from_row(row))
    row.text = "Somebody has written this instead."
    with translation.override("zh-hans"):
        assert row.text in message_html(MessageSnapshot.from_row(row))


def test_error_of_an_earlier_release_is_said_in_the_reader_s_language() -> None:
    """UI-13: a row keeps the template of the release that wrote it, which the catalogs may no longer contain."""
    earlier = "{name} takes no more requests for now. Try again in {seconds} s."
    words = _("{problem} It says: {words}", problem=_(earlier, name="claude", seconds=8), words="slow down")
    with translation.override("zh-hans"):
        assert translate(str(words), words.to_json()) == CHINESE


def test_declined_answer_of_an_earlier_release_is_said_in_the_reader_s_language() -> None:
    """UI-13: also if the row quotes the provider's explanation."""
    earlier = "The model declined to answer. Rephrase the request, or switch to another model."
    words = _("{problem} The provider says: {words}", problem=_(earlier), words="no")
    with translation.override("zh-hans"):
        assert "declined" not in translate(str(words), words.to_json())
        assert "declined" not in translate(earlier, _(earlier).to_json())


@pytest.mark.parametrize("language", ["zh-hans", "zh-hant"])
def test_earlier_texts_lead_to_present_ones(language: str) -> None:
    """UI-13: a text that replaced an earlier one is translated, and has the same values."""
    with translation.override(language):
        assert [text for text in PRESENT.values() if translation.gettext(text) == text] == []
        assert [text for text in PRESENT if translation.gettext(text) != text] == []
    fields = [
        [{name for _text, name, *_format in Formatter().parse(text) if name} for text in pair]
        for pair in PRESENT.items()
    ]
    assert [pair for pair, (before, now) in zip(PRESENT.items(), fields, strict=True) if before != now] == []


def test_instruction_to_the_model_is_shown_as_what_it_means_to_people() -> None:
    """RUN-15: the row keeps the text for the model, and the page explains what happened.

    An edited row is shown unchanged.
    """
    words = RESUME_NOTE.to_json() | {"shown": RESUME_NOTE_SHOWN.to_json()}
    row = ChatMessage(session_id="s_1", type="text", role="system", sequence=1, text=str(RESUME_NOTE))
    row.provider_data = {"words": words}
    assert "The answer continues below." in message_html(MessageSnapshot.from_row(row))
    assert "Continue exactly" not in message_html(MessageSnapshot.from_row(row))
    with translation.override("zh-hans"):
        assert "回答在下方继续" in message_html(MessageSnapshot.from_row(row))
    row.text = "Go on."
    assert "Go on." in message_html(MessageSnapshot.from_row(row))


def test_values_are_never_taken_for_places() -> None:
    """UI-13, MSG-12: values may be any message of a server, also with braces, and are not formatted again."""
    words = _("{problem} It says: {words}", problem="No.", words="{problem} {0} {missing} %s")
    assert translate(str(words), words.to_json()) == "No. It says: {problem} {0} {missing} %s"


@given(JSON, st.text())
@example(words={}, text="\r")
def test_malformed_words_change_nothing(words: object, text: str) -> None:
    """MSG-10: invalid values of hand-edited rows do not change the text."""
    assert translate(text, words) == text
    assert translate(text, {"template": text, "values": words}) == text
