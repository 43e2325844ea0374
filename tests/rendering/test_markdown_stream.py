"""Streams of Markdown, which end with the blocks of the page. The tail always equals a new rendering."""

from importlib import import_module

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from chat.rendering.markdown import parser, render
from chat.rendering.markdown.blocks import normalize
from chat.rendering.markdown.stream import Append, MarkdownStream, Op, Replace
from tests.rendering.documents import ANSWER, TRAPS, pieces, texts
from tests.support.effort import cases


def fold(html: list[str], ops: list[Op]) -> None:
    for op in ops:
        if isinstance(op, Append):
            html.append(op.html)
        else:
            html[op.index] = op.html


def stream_blocks(cut: list[str], *, drawing: bool = False) -> tuple[str, ...]:
    stream, html = MarkdownStream(), list[str]()
    for piece in cut:
        fold(html, stream.feed(piece))
        if drawing:
            stream.tail_html()
    fold(html, stream.finish())
    assert stream.tail_html() == ""
    assert html == stream.blocks
    return tuple(html)


@settings(deadline=None, max_examples=cases(200))
@given(pieces(), st.booleans())
def test_stream_cut_anywhere_ends_as_the_page(cut: list[str], drawing: bool) -> None:
    """LIVE-01: for any pieces, the frozen blocks are those of the whole text."""
    assert stream_blocks(cut, drawing=drawing) == render.draw_all(normalize("".join(cut)))


@pytest.mark.parametrize("text", TRAPS)
def test_trap_fed_by_characters_ends_as_the_page(text: str) -> None:
    """LIVE-01, MSG-12: every difficult text, fed by single characters, ends with the page's blocks."""
    assert stream_blocks(list(text), drawing=True) == render.draw_all(normalize(text))


@settings(deadline=None, max_examples=cases(200))
@given(pieces())
@example(list('[foo]: https://u\n"ti tle" x'))
@example(["- [x", "] foo"])
@example(["# a", " #", " b"])
@example(["&am", "p; <https://a", ".b> c"])
@example(["word\t", " "])
@example(["[foo]\n\n", "[foo]: https://u\n"])
@example(["*a", "b* ", "c  ", " d"])
def test_tail_drawn_at_every_piece_equals_tail_drawn_once(cut: list[str]) -> None:
    """LIVE-01: earlier drawings of the tail do not change later ones."""
    often, once = MarkdownStream(), MarkdownStream()
    for piece in cut:
        often.feed(piece)
        once.feed(piece)
        often.tail_html()
    assert often.tail_html() == once.tail_html()


@pytest.mark.parametrize("text", TRAPS)
def test_tail_of_every_prefix_equals_tail_drawn_once(text: str) -> None:
    """LIVE-01: the tail of every prefix of every difficult text equals a single rendering."""
    assert_tail_drawn_often_equals_once(list(text[:150]))  # every prefix takes quadratic time


def assert_tail_drawn_often_equals_once(cut: list[str]) -> None:
    often = MarkdownStream()
    for end, piece in enumerate(cut, 1):
        once = MarkdownStream()
        for earlier in cut[:end]:
            once.feed(earlier)
        often.feed(piece)
        assert often.tail_html() == once.tail_html()


@settings(deadline=None, max_examples=cases(200))
@given(texts)
def test_frozen_block_is_final_without_definitions(text: str) -> None:
    """LIVE-01: only a link definition replaces blocks that a viewer has."""
    text = text.replace("]:", "")
    stream, html = MarkdownStream(), list[str]()
    for character in text:
        ops = stream.feed(character)
        assert all(isinstance(op, Append) for op in ops)
        fold(html, ops)
        assert html == stream.blocks
    assert all(isinstance(op, Append) for op in stream.finish())


def test_late_definition_replaces_the_frozen_block_that_uses_it() -> None:
    """LIVE-01: text becomes a link, and no other block is sent again."""
    stream = MarkdownStream()
    stream.feed("See [it].\n\nSee [that].\n\nNothing.\n\n")
    ops = stream.feed("[it]: https://example.org/\n\nEnd.\n\nMore")
    assert [type(op) for op in ops] == [Append, Append, Replace]
    assert ops[-1] == Replace(0, stream.blocks[0])
    assert all(isinstance(op, Append) for op in MarkdownStream().feed("[it]\n\n[it]: https://a.b\n\nEnd.\n\nMore"))
    assert stream.blocks[0] == render.blocks("See [it].\n\n[it]: https://example.org/")[0]


@pytest.mark.parametrize(
    "block", ["| a |\n|---|\n| b |\n\n", "- a\n- b\n", "10. a\n    - b\n11. c\n\n", "```\na\n```\n", "a\n\n", "# a\n"]
)
def test_block_freezes_with_the_first_letter_of_the_next(block: str) -> None:
    """LIVE-01: a finished block is not drawn again while the paragraph below it grows."""
    stream = MarkdownStream()
    assert stream.feed(block + "\n") == []
    assert len(stream.feed("T")) == 1
    assert stream.tail_html() == "<p>T</p>"


def test_open_code_is_plain_and_frozen_code_is_colored() -> None:
    """UI-01: code is highlighted when its block is finished."""
    stream = MarkdownStream()
    stream.feed("```python\ndef f(): pass\n")
    assert '<span class="k">' not in stream.tail_html()
    stream.feed("```\n\nEnd")
    assert '<span class="k">def</span>' in stream.blocks[0]


def test_answer_is_drawn_while_it_streams() -> None:
    """UI-01: an unfinished answer shows its finished blocks and its tail."""
    stream = MarkdownStream()
    stream.feed(ANSWER[: ANSWER.index("Watch it") + 5])
    assert len(stream.blocks) == 3
    assert stream.tail_html().endswith("<li><p>Watch</p></li></ol>")


def test_row_that_brings_missing_cells_stays_in_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: the parser ends a table that lacks too many cells only after the row is complete."""
    for module in ("markdown_it.rules_block.table", "chat.rendering.markdown.tail"):
        monkeypatch.setattr(import_module(module), "MAX_AUTOCOMPLETED_CELLS", 20)
    cut = ["|a|b|c|d|\n|-|-|-|-|\n", *["e\n"] * 6, "f", "|g|h|i\n", "j\n", "k\n", "\nend"]
    assert_tail_drawn_often_equals_once(cut)
    assert stream_blocks(cut) == render.draw_all("".join(cut))
    assert [block.count("<tr>") for block in stream_blocks(cut)] == [8, 0, 0]


WORDS = [
    "plain ",
    "**bold** ",
    "*soft* ",
    "`code` ",
    "~~gone~~ ",
    "a_b ",
    "2 * 3 ",
    "* ",
    "**",
    "`",
    "[link](https://a.b/c) ",
]
WORDS += [
    "[open ",
    "[1, 2] ",
    "[1, ",
    "] ",
    "](https://a.b) ",
    "https://a.b/c. ",
    "https://a.b查",
    "x@y.de ",
    "\\* ",
    "$a$ ",
    "&amp; ",
    "<",
    "line\n",
    "wide  \n",
    "é漢 ",
    "<br /",
    "> ",
    "<br> ",
    "<sub>i, j",
    "<sup>2 a",
    "</sub> ",
    "</sup> ",
    "文**“",
    "”**文 ",
]


@settings(deadline=None, max_examples=cases(300))
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), st.lists(st.sampled_from(WORDS), max_size=12))
@example(["<br ", "/", "> "], [])
@example(["<sub>i, j", "</sub> "], [])
@example(["文**“", "”**文 "], ["**bold** "])
def test_long_paragraph_is_drawn_from_where_it_has_grown(before: list[str], after: list[str]) -> None:
    """LIVE-01: no mark, link or escape that ends later changes the settled beginning of a paragraph."""
    long = "It begins with plain words. " * 40
    assert_tail_drawn_often_equals_once([long, *before, "some more words ", *after, "and an end"])


def test_long_paragraph_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: a frame of a 20 KB paragraph with emphasis parses only its end."""
    parsed: list[int] = []
    tokens_of = parser._inline_tokens

    def noted(text: str, drawing: parser.Drawing) -> list[Token]:
        parsed.append(len(text))
        return tokens_of(text, drawing)

    monkeypatch.setattr(parser, "_inline_tokens", noted)
    stream = MarkdownStream()
    for number in range(400):
        stream.feed(f"Some of the words are **bold {number}** or `code`, and ")
        stream.tail_html()
    assert len(parsed) > 100
    assert max(parsed) < 1_500
