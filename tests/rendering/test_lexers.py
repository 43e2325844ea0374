"""The lexers that run in the server's process, where nothing can interrupt a regular expression."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from time import thread_time
from typing import Any

import pytest
from pygments.lexer import Lexer, RegexLexer
from pygments.token import Token

from chat.rendering.budget import IN_THREAD, ON_LOOP
from chat.rendering.markdown import highlight, render
from chat.rendering.markdown.blocks import is_plain
from chat.rendering.markdown.code_blocks import CODE_START
from chat.rendering.markdown.highlight import (
    _LANGUAGES,
    MIN_SECONDS,
    QUICK,
    SLOW_STARTS,
    Colors,
    _all_pieces,
    _lexer,
    is_quick,
    known_as,
    use_timer,
)
from chat.rendering.markdown.stream import MarkdownStream
from tests.support.ambiguity import growth

# JSON has no regular expressions; a loop reads each character once.
WITHOUT_EXPRESSIONS = {"json"}
# Expressions of quick lexers whose match takes quadratic time. All their matches in a text together take no more: the
# words after `<<` do not overlap, a match after `super(` or `%` ends before the next one, and the lengths of gaps and
# lines of code with colors are limited.
MAX_GROWTH = {
    r"<<-?\s*(\'?)\\?(\w+)[\w\W]+?\2": 2,
    r"(super)(\s*)(\([\w,?.$\s]+\s*\))": 2,
    r"%(\(\w+\))?[-#0 +]*([0-9]+|[*])?(\.([0-9]+|[*]))?[hlL]?[E-GXc-giorsaux%]": 2,
    r"(\s+)([^\n_]*)(_\b)": 2,
}
# Code whose time grows at least by half with each further repetition. This much takes seconds, and a little more hours.
SLOW = {
    "c": "a " + "//\\\n" * 22 + "1",
    "perl": "s!" + "\\" * 36,
    "php": "<?php <<<" + "é" * 26,
    "fortran": "'" + r"\00" * 28,
    "bash": "echo $'" + r"\00" * 16,
}


@pytest.mark.parametrize(
    ("pattern", "power"),
    [
        ("abc", 0),
        ("a*b", 1),
        (r'"(?:\\.|[^\\"])*"', 1),
        (r"\s*;\s*", 1),
        (r"\d+(?:\.\d+)*$", 1),
        ("(?:a?b?)*c", 1),
        ("a*a*b", 2),
        (".*?x.*?y", 2),
        ("(?:(?=a*b).)*", 2),
        ("a*a*a*b", 3),
        ("(a*)*b", inf),
        ("(a+)+$", inf),
        ("(a*)*", 0),
        ("(?:ab|a|b)*c", inf),
        ("(?:a|Ab|B)*c", 1),
        ("(?i:a|Ab|B)*c", inf),
        (r"(\\\\|\\!|[^!])*!", inf),
        (r"(?:\w|[^\x00-\x7f])*\n", inf),
        ("(?:a?){30}b", inf),
        ("(?:a?){0,7}b", 0),
        ("(?:a){30}b", 0),
    ],
)
def test_growth_of_time_is_computed(pattern: str, power: float) -> None:
    """The tests of the lexers rely on this."""
    assert growth(pattern) == power


def rules_of(lexer: Lexer) -> Iterator[tuple[re.Pattern[str], Any]]:
    """Yield the expressions of a lexer, each with its action."""
    states: dict[str, list[tuple[Any, Any, Any]]] = getattr(lexer, "_tokens", {})
    for rules in states.values():
        yield from ((match.__self__, action) for match, action, _state in rules)


def lexers_in(action: Callable[..., object]) -> Iterator[str]:
    """Yield the languages whose lexers an action uses, from the values that its function has kept."""
    for cell in getattr(action, "__closure__", None) or ():
        values = cell.cell_contents if isinstance(cell.cell_contents, tuple) else [cell.cell_contents]
        for value in values:
            if isinstance(value, type) and issubclass(value, Lexer):
                yield value.name
            elif hasattr(value, "__closure__"):
                yield from lexers_in(value)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_quick_lexers_take_quadratic_time_at_most(name: str) -> None:
    """LIVE-01: no expression of a lexer in the server's process can stop it; others run in a process that is ended.

    A lexer may try an expression at each position, so that a match must take linear time.
    """
    lexer = _lexer(name, inside_php=False)
    assert isinstance(lexer, RegexLexer) or name in WITHOUT_EXPRESSIONS
    start = re.escape(SLOW_STARTS.get(name, "")) or None
    for pattern in {pattern for pattern, _action in rules_of(lexer)}:
        is_slow = growth(pattern.pattern, pattern.flags) > MAX_GROWTH.get(pattern.pattern, 1)
        assert is_slow <= (start is not None and pattern.pattern.removeprefix("(?s)").startswith(start)), pattern
    inner = {known_as(language) for _pattern, action in rules_of(lexer) for language in lexers_in(action)}
    assert inner <= QUICK - SLOW_STARTS.keys()  # only code that is marked as one of these is searched for slow starts


def test_other_lexers_run_in_another_process() -> None:
    """LIVE-01: neither the event loop nor the thread of a request runs a lexer that nothing can interrupt."""
    for name in _LANGUAGES:
        assert Colors(IN_THREAD).allow("a", name) is (name in QUICK)
        assert name in QUICK or not Colors(ON_LOOP).allow("a", name)
    assert is_quick("echo '$a'", "sh")
    assert not is_quick("echo $'a'", "sh")


@pytest.mark.parametrize(("language", "code"), SLOW.items(), ids=SLOW)
def test_code_that_takes_forever_stays_plain_and_the_text_around_it_is_drawn(language: str, code: str) -> None:
    """MSG-12, LIVE-01: such code costs its colors only, in a message and in the preview of a file."""
    text = f"```{language}\n{code}\n```\n\nAnd *then*."
    assert render.draw_soon(text) is None
    block, after = render.blocks(text)
    assert not is_plain(block)
    assert "<span class=" not in block.split("<pre")[1]
    assert after == "<p>And <em>then</em>.</p>"
    assert render.colored(code, language) is None


async def test_many_such_codes_share_the_time_of_one_message() -> None:
    """LIVE-01, MSG-12: only their colors are missing, live as after a reload."""
    text = "# Title\n\n" + "".join(f"```c\n{SLOW['c']}{number}\n```\n\n*{number}*\n\n" for number in range(5))
    stream = MarkdownStream(ON_LOOP)
    stream.start(thread_time(), seconds=60)
    stream.feed(text)
    for index, source in list(stream.provisional.items()):
        [drawn] = await render.draw(source)
        stream.complete(index, drawn)
    stream.finish()
    blocks = render.blocks(text)
    assert not any(map(is_plain, blocks))
    assert blocks == tuple(stream.blocks)
    assert not stream.is_exact  # which other code has colors depends on the time, so the finished text decides


async def test_a_stream_with_little_code_from_elsewhere_is_exact() -> None:
    """LIVE-01: the whole text of an ordinary answer need not be drawn again at its end."""
    stream = MarkdownStream(ON_LOOP)
    stream.start(thread_time(), seconds=60)
    stream.feed(text := "```c\nint a;\n```\n\nAnd *then*.\n\n")
    for index, source in list(stream.provisional.items()):
        stream.complete(index, *await render.draw(source))
    stream.finish()
    assert stream.is_exact
    assert tuple(stream.blocks) == render.blocks(text)


async def test_a_stream_with_too_much_code_in_one_block_is_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: another process draws the block without what is before it, so that it colors more than in the text."""
    monkeypatch.setattr(highlight, "MAX_LANGUAGES", 1)
    stream = MarkdownStream(ON_LOOP)
    stream.start(thread_time(), seconds=60)
    stream.feed("> ```c\n> int a;\n> ```\n> ```cpp\n> int b;\n> ```\n\nAnd *then*.\n\n")
    for index, source in list(stream.provisional.items()):
        [drawn] = await render.draw(source)
        assert drawn.count(f"{CODE_START}<span") == 2
        stream.complete(index, drawn)
    stream.finish()
    assert not stream.is_exact


@pytest.fixture
def timer() -> Iterator[None]:
    before = signal.getsignal(signal.SIGVTALRM)
    use_timer()
    yield
    signal.signal(signal.SIGVTALRM, before)


class Stubborn(Lexer):
    """A lexer that loses the first exception of the timer, as Python does while it destroys an object."""

    def get_tokens(self, text: str, unfiltered: bool = False) -> Iterator[Any]:
        with suppress(BaseException):
            self._take_forever()
        self._take_forever()
        yield Token, "a"

    def _take_forever(self) -> None:
        while True:
            pass


@pytest.mark.usefixtures("timer")
def test_the_timer_ends_a_lexer_that_lost_its_first_exception() -> None:
    """MSG-12: if not, the process ends, and the text around the code loses its form."""
    colors = Colors()
    colors.seconds = MIN_SECONDS
    assert _all_pieces(Stubborn(), "a", None, colors) == []
    assert colors.seconds < 0
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    assert _all_pieces(Stubborn(), "a", None, colors) == []
