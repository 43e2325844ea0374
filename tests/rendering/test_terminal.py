"""Terminal output as HTML."""

from __future__ import annotations

import pytest

from chat.rendering.text.terminal import screen


@pytest.mark.parametrize(
    ("output", "html"),
    [
        ("plain <b> & text", "plain &lt;b&gt; &amp; text"),
        ("\x1b[31mred\x1b[0m plain", '<span class="fg1">red</span> plain'),
        ("\x1b[1;92mok\x1b[39m!", '<span class="bold fg10">ok</span><span class="bold">!</span>'),
        ("\x1b[1mb\x1b[22mn", '<span class="bold">b</span>n'),
        ("\x1b[38;5;196mx\x1b[my", '<span class="fg9">x</span>y'),
        ("\x1b[38;5;28mx\x1b[38;5;240my", '<span class="fg2">x</span><span class="fg8">y</span>'),
        ("\x1b[38:2::255:135:0;48;2;0;0;95mx", '<span class="bg4 fg11">x</span>'),
        ("\x1b[41;97mx\x1b[49my", '<span class="bg1 fg15">x</span><span class="fg15">y</span>'),
        ("\x1b[7;9mx\x1b[27my\x1b[29mz", '<span class="inverse strike">x</span><span class="strike">y</span>z'),
        ("\x1b[4:3mx\x1b[4:0my", '<span class="underline">x</span>y'),
        ("\x1b[38;5mx\x1b[38;5;999my\x1b[48mz\x1b[" + "9" * 5000 + "m", "xyz"),
        ("|\b/\b-\b\bdone\a", "done"),
        ("a\nb\n\x1b[2A\x1b[2Kc\nd", "c\nd"),
        ("\x1b[9999Ax\x1b[?25l\x1b(By", "xy"),
        ("\x1b[38;2;1;2;3;31mx", '<span class="fg1">x</span>'),
        ("\x1b[2K\x1b[1Gclean\x1b]0;title\x07ed", "cleaned"),
        ("\x1b[31m<i>\x1b[0m", '<span class="fg1">&lt;i&gt;</span>'),
        ("\x1b[", "\x1b["),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone"),
        ("", ""),
    ],
)
def test_ansi_becomes_classes_and_everything_else_is_escaped(output: str, html: str) -> None:
    """UI-10: ANSI colors become classes; MSG-12: all other characters are shown exactly."""
    assert screen(output).shown == html


def test_output_of_500_lines_is_whole() -> None:
    """UI-10: up to 500 lines are shown whole."""
    shown = screen("\n".join(map(str, range(500))))
    assert (shown.shown.count("\n") + 1, shown.rest, shown.lines) == (500, "", 500)


def test_longer_output_shows_200_lines_and_keeps_the_rest_with_its_color() -> None:
    """UI-10: longer output shows the first 200 lines and "show all"."""
    shown = screen("\x1b[32m" + "\n".join(map(str, range(501))))
    assert (shown.shown.count("\n") + 1, shown.lines) == (200, 501)
    assert shown.rest.startswith('<span class="fg2">200\n201')
