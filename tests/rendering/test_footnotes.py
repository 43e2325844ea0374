"""Footnotes and alerts: their HTML, and how a growing text gets them."""

from time import thread_time

import pytest

from chat.rendering.markdown import render
from chat.rendering.markdown.stream import Append, MarkdownStream, Replace


def reference(number: int) -> str:
    return (
        '<sup><button type="button" class="footnote-ref" data-action="footnote" aria-describedby="w-footnote">'
        f"{number}</button></sup>"
    )


def note(number: int, html: str) -> str:
    return (
        '<div class="footnote"><button type="button" class="footnote-back" data-action="footnote-back"'
        f' aria-describedby="w-footnote-back">{number}</button><div class="footnote-text">{html}</div></div>'
    )


def test_footnote_is_drawn_where_it_is_defined() -> None:
    """UI-01: notes are numbered by their definitions, whatever their labels are, and can contain any blocks."""
    text = "Fast[^b], and *small*[^1].\n\n[^b]: See `bench`.\n[^1]: One.\n\n    - Two"
    assert render.blocks(text) == (
        f"<p>Fast{reference(1)}, and <em>small</em>{reference(2)}.</p>",
        note(1, '<p>See <code dir="ltr">bench</code>.</p>'),
        note(2, "<p>One.</p><ul><li>Two</li></ul>"),
    )


def test_footnote_has_no_ids_that_another_message_could_share() -> None:
    """MSG-12: footnotes have no ids, because two messages may use the same labels."""
    assert " id=" not in render.render("a[^1]\n\n[^1]: b")


@pytest.mark.parametrize("text", ["a[^1]", "a[^ 1]\n\n[^ 1]: https://b", "a `[^1]`\n\n[^1]: b", "a \\[^1]\n\n[^1]: b"])
def test_other_brackets_are_no_reference(text: str) -> None:
    """MSG-12: brackets without a definition, in code, or after a backslash stay text."""
    assert "footnote-ref" not in render.render(text)


def test_empty_brackets_beside_a_note_are_text() -> None:
    """MSG-12: a paragraph with empty brackets beside a note is rendered, not shown as source."""
    assert render.blocks("*a* [ ] b\n\n[^1]: c")[0] == "<p><em>a</em> [ ] b</p>"


def test_second_definition_of_a_label_keeps_its_text() -> None:
    """MSG-12: the text of a second definition for a label is shown, so that no text is lost."""
    assert render.blocks("[^1]: a\n[^1]: b\n\n[^1]")[1:] == (note(1, "<p>b</p>"), f"<p>{reference(1)}</p>")


def test_definition_at_the_end_replaces_only_what_refers_to_it() -> None:
    """LIVE-01: a late definition renders again only the blocks that use it, as with links."""
    stream = MarkdownStream()
    stream.feed("One[^1].\n\nTwo[^2].\n\nNothing.\n\nEnd.\n\n[^1]: ")
    assert "[^1]" in stream.blocks[0]
    ops = stream.feed("first\n[^2]: second\n\n") + stream.finish()
    assert [op for op in ops if isinstance(op, Replace)] == [
        Replace(0, f"<p>One{reference(1)}.</p>"),
        Replace(1, f"<p>Two{reference(2)}.</p>"),
    ]
    assert [op.html for op in ops if isinstance(op, Append)][1:] == [note(1, "<p>first</p>"), note(2, "<p>second</p>")]


@pytest.mark.parametrize("unit", ["Word[^{0}] and [x].\n\n[^{0}]: A note.\n\n", "> [!NOTE]\n> Some text.\n\n"])
def test_long_text_costs_no_more_per_character(unit: str) -> None:
    """LIVE-01: four times the text takes about four times as long to stream, not sixteen times."""
    costs = []
    for units in (150, 600):
        text, stream = "".join(unit.format(number) for number in range(units)), MarkdownStream()
        started = thread_time()
        for start in range(0, len(text), 40):
            stream.feed(text[start : start + 40])
            stream.tail_html()
        costs.append(thread_time() - started)
    assert costs[1] < 9 * costs[0]


@pytest.mark.parametrize("kind", ["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"])
def test_alert_is_named_by_the_page(kind: str) -> None:
    """UI-13: the alert's title is not in the HTML, which is the same in all languages."""
    assert render.blocks(f"> [!{kind}]\n> Mind *this*.\n> - a") == (
        f'<div class="alert alert-{kind.lower()}" role="group" aria-labelledby="w-{kind.lower()}">'
        "<p>Mind <em>this</em>.</p><ul><li>a</li></ul></div>",
    )


@pytest.mark.parametrize("text", ["> [!NOTE] a", "> [!OTHER]\n> a", "> a\n> [!NOTE]", "> \\[!NOTE]\n> a"])
def test_other_quotes_are_no_alert(text: str) -> None:
    """MSG-12: an alert needs a known kind alone on the first line."""
    assert render.render(text).startswith('<div class="block" dir="auto"><blockquote>')


@pytest.mark.parametrize(
    ("fence", "buttons"),
    [("mermaid", {"show-diagram", "show-code"}), ("html", {"preview"}), ("SVG", {"preview"}), ("xml", set())],
)
def test_only_finished_code_is_shown_as_something_else(fence: str, buttons: set[str]) -> None:
    """UI-11: only finished code has the buttons for a diagram or a preview."""
    stream = MarkdownStream()
    stream.feed(f"```{fence}\n<b>")
    drawn = {"show-diagram", "show-code", "preview"}
    assert {action for action in drawn if action in stream.tail_html()} == set()
    stream.finish()
    assert {action for action in drawn if action in stream.blocks[0]} == buttons


@pytest.mark.parametrize(
    ("written", "extension"),
    [("py", "py"), ("C++", "cpp"), ("sh", "sh"), ("csv", "csv"), ("mermaid", "mmd"), ("Dockerfile", ""), ("../x", "")],
)
def test_downloaded_code_is_named_by_its_language(written: str, extension: str) -> None:
    """UI-11: only extensions that Parley knows are used. Other code has none, and is saved as text."""
    attribute = f' data-file="{extension}"' if extension else ""
    assert render.blocks(f"```{written}\nx\n```")[0].startswith(f'<div class="code"{attribute}>')
