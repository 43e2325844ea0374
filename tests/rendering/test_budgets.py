"""No text blocks the event loop, fills memory, or produces HTML much larger than itself.

Tests measure the CPU time of their own thread, which other processes do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.process_pool import Limits, ProcessPool, Reason, WorkFailed
from chat.rendering import budget
from chat.rendering.budget import MAX_MARKDOWN_LENGTH, MIN_OUTPUT, ON_LOOP, UNLIMITED, Allowance
from chat.rendering.markdown import blocks as markdown_blocks
from chat.rendering.markdown import render
from chat.rendering.markdown.blocks import draw_all, is_plain, normalize
from chat.rendering.markdown.live_text import LiveText
from chat.rendering.messages.tool_card import output
from chat.rendering.text.terminal import screen
from chat.rendering.text.user_text import user_text_html
from tests.rendering.documents import ANSWER, pieces
from tests.rendering.families import FAMILIES
from tests.rendering.test_live_text import Viewer
from tests.support.effort import cases, shorten_collections

# The CPU seconds that one callback of the event loop may take.
BUDGET = 0.1
ALLOWANCES = [UNLIMITED, Allowance(0.0), Allowance(0.0004, 5)]
MAX_TIMES = 20
SIZES = [*((name, 20_000, 700) for name in FAMILIES), *((name, 200_000, 9_000) for name in FAMILIES)]
SIZES += [(name, 2_000_000, 14_000) for name in ("references", "pictures", "lines")]


@pytest.fixture(autouse=True, scope="module")
def _short_collections() -> None:
    """Leave the objects of earlier tests out of garbage collections, because a server does not have them."""
    shorten_collections()


def assert_not_much_larger(blocks: Sequence[str], text: str) -> None:
    assert sum(map(len, blocks)) <= max(MAX_TIMES * len(text), 2 * MIN_OUTPUT)


@pytest.mark.parametrize(("family", "size", "step"), SIZES)
def test_no_frame_of_a_stream_holds_up_the_loop(family: str, size: int, step: int) -> None:
    """LIVE-01: each frame of any text in any pieces stays in the budget; text beyond the budget is shown as source."""
    text, live, costs = FAMILIES[family](size), LiveText("m_1", ON_LOOP), list[float]()
    for start in range(0, len(text) + step, step):
        live.append(text[start : start + step])
        started = thread_time()
        live.frame(end=start >= len(text))
        costs.append(thread_time() - started)
    assert max(costs) < BUDGET
    assert_not_much_larger(live.snapshot()["blocks"], text)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_whole_text_is_drawn_at_once_or_elsewhere(family: str) -> None:
    """MSG-12: the longest text that is rendered on the event loop stays within the budget."""
    text = FAMILIES[family](render.MAX_LENGTH_HERE)
    started = thread_time()
    drawn = render.draw_soon(text)
    assert thread_time() - started < BUDGET
    assert_not_much_larger(drawn or (), text)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPool]:
    """Processes with a short time limit, so that the tests are fast."""
    limits = Limits(cpu_seconds=0.3, seconds=60, memory_mb=256, output_bytes=10_000_000, queue_seconds=60)
    pool = ProcessPool("chat.rendering.markdown.blocks", limits, size=1, keep_seconds=60)
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("family", "size", "is_source"),
    [
        ("pictures", 200_000, True),
        ("references", 60_000, False),
        ("wide tables", 20_000, True),
        ("links", 30_000, False),
    ],
)
async def test_what_another_process_cannot_draw_in_time_is_shown_as_source(
    family: str, size: int, is_source: bool, processes: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-12: requests and the event loop show the source; a failed text is not rendered again."""
    text = FAMILIES[family](size)
    monkeypatch.setattr(render, "_processes", processes)
    blocks = render.blocks(text)
    assert all(map(is_plain, blocks)) is is_source
    assert_not_much_larger(blocks, text)
    monkeypatch.setattr(render, "_processes", None)
    assert await render.draw(text) == blocks


@contextmanager
def busy_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Render with a pool in which no process is free."""
    limits = Limits(cpu_seconds=1, seconds=1, memory_mb=256, output_bytes=10, queue_seconds=0.01)
    busy = ProcessPool("tests.support.child_work", limits, size=1)
    held = busy.stream("sleep_after", "x")
    next(held)
    with monkeypatch.context() as patch:
        patch.setattr(render, "_processes", busy)
        yield
    held.close()  # type: ignore[attr-defined]  # a generator


async def test_a_busy_pool_costs_the_colors_of_one_look_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: a text that was shown as source because no process was free is rendered the next time."""
    text = FAMILIES["answer"](30_000)
    with busy_pool(monkeypatch):
        assert all(map(is_plain, render.blocks(text)))
    assert not any(map(is_plain, await render.draw(text)))


async def test_a_busy_pool_costs_a_short_text_only_its_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: if no process is free, headings and lists are drawn, and the next look shows the colors, too."""
    text = "# Plan\n\n- *one*\n\n```cpp\nint waiting;\n```"
    with busy_pool(monkeypatch):
        drawn, again = render.blocks(text), await render.draw(text)
    assert drawn == again == draw_all(text, Allowance(colors=False))
    assert not any(map(is_plain, drawn))
    assert "<span" not in drawn[2].split("<pre")[1]
    assert render.blocks(text) == draw_all(text)


def test_nothing_is_drawn_in_vain_before_code_for_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: the event loop draws no text that another process draws anyway."""
    with monkeypatch.context() as patch:
        patch.setattr(markdown_blocks, "draw_block", None)
        assert render.draw_soon("First *this*.\n\n> ```cpp\n> int later;\n> ```") is None


def test_previews_of_files_do_not_keep_messages_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """LIVE-01: messages have processes that no preview uses."""
    monkeypatch.setattr(render, "_processes", None)
    assert "<span" in (render.colored("int a;", "cpp") or "")


def test_references_expand_by_their_source_at_most() -> None:
    """MSG-12: references expand as in cmark; further references stay text."""
    text = FAMILIES["references"](40_000)
    [paragraph] = draw_all(text)
    assert paragraph.count("<a ") == budget.MAX_EXPANDED // len("http://x/" + "y" * 20_000)
    assert paragraph.count("[a]") > 6_000
    many = "[a]: http://x/y\n\n" + "- [a]\n" * 20_000
    assert draw_all(many)[0].count("<a ") == MAX_MARKDOWN_LENGTH // len("http://x/y")
    title = "t" * 5_000
    [paragraph] = draw_all(f'[a]: http://x/y "{title}"\n\n' + "[a] " * 1_000)
    assert paragraph.count("<a ") == budget.MAX_EXPANDED // len("http://x/y" + title)


def test_many_blocks_that_are_small_each_are_much_together() -> None:
    """MSG-12: the HTML of an empty code block is forty times as long as its source."""
    text = "```\n```\n\n" * 2_000
    blocks = draw_all(text)
    assert_not_much_larger(blocks, text)
    assert not is_plain(blocks[0])
    assert is_plain(blocks[-1])


def test_a_text_that_is_too_long_is_markdown_up_to_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-12: the rest is shown as source, in blocks that a browser can lay out one by one."""
    text = "*a*\n\n" * 22_000
    blocks = draw_all(text)
    first = next(index for index, block in enumerate(blocks) if is_plain(block))
    assert set(blocks[:first]) == {"<p><em>a</em></p>"}
    assert all(map(is_plain, blocks[first:]))
    assert first == MAX_MARKDOWN_LENGTH // 5 + 1
    shown = "".join(
        block.removeprefix('<pre class="plain"><code>').removesuffix("</code></pre>") for block in blocks[first:]
    )
    assert shown.count("*a*") == 22_000 - first


def limits_for_tests(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(budget, "MAX_MARKDOWN_LENGTH", 60)
    patch.setattr(budget, "MAX_LINE_LENGTH", 20)
    patch.setattr(markdown_blocks, "MAX_PLAIN_LENGTH", 15)


@settings(deadline=None, max_examples=cases(100))
@given(pieces(), st.sampled_from([UNLIMITED, Allowance(0.0), Allowance(0.0004, 5)]), st.integers(0, 10**9).map(Random))
def test_streams_that_are_stopped_anywhere_end_as_the_page(
    cut: list[str], allowance: Allowance, chance: Random
) -> None:
    """LIVE-01: whenever a text exceeds the budget or the length, its frames give the same as a page load."""
    with pytest.MonkeyPatch.context() as patch:
        limits_for_tests(patch)
        live, viewer = LiveText("m_1", allowance), Viewer()
        for piece in cut:
            live.append(piece)
            viewer.apply(live.frame() or live.snapshot())
            for index, block in list(live.provisional.items()):
                drawn = draw_all(block)
                if chance.random() < 0.5 and len(drawn) == 1 and not is_plain(drawn[0]):
                    assert viewer.apply(live.complete(index, drawn[0]))
        assert viewer.apply(live.frame(end=True) or {})
        page = draw_all(normalize("".join(cut)))
        if not live.ended:
            viewer.apply(live.settle(page))
        assert viewer.state()[2:] == (list(page), "", True)
        late = Viewer()
        late.apply(live.snapshot())
        assert late.state() == viewer.state()


def test_a_block_that_is_over_budget_is_drawn_elsewhere_and_the_stream_goes_on() -> None:
    """UI-01: a long formula is shown as source at first, and the text after it as usual."""
    live = LiveText("m_1", ON_LOOP)
    live.append("$$\n" + "\\frac{a_1}{b^2}+" * 120 + "c\n$$\n\nAnd *then*.\n\nEnd")
    live.frame()
    [(index, formula)] = live.provisional.items()
    shown = live.snapshot()["blocks"]
    assert (is_plain(shown[0]), shown[1:]) == (True, ["<p>And <em>then</em>.</p>"])
    [drawn] = draw_all(formula)
    assert "<mfrac>" in drawn
    assert live.complete(index, drawn) == {"op": "delta", "id": "m_1", "n": 2, "replace": [[0, drawn]], "keep": 10}
    assert live.frame(end=True) == {"op": "delta", "id": "m_1", "n": 3, "blocks": ["<p>End</p>"], "end": 1}


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("http://a " * 220_000, 3_500_000),
        ("`a` ``b`` ~~~\n" * 140_000, 2_500_000),
        ("```\n```\n" * 250_000, 2_500_000),
    ],
    ids=["links", "code", "fences"],
)
def test_what_people_send_is_styled_as_far_as_it_is_read(text: str, longest: int) -> None:
    """MSG-12: two million characters of a user's text are shown, and styled up to a limit."""
    started = thread_time()
    drawn = user_text_html(text)
    assert thread_time() - started < 4 * BUDGET  # in a thread
    assert len(drawn) < longest


@pytest.mark.parametrize(
    "unit", ["\x1b[1m", "\x1b[38;2;1;2;3mx", "\x1b[A\n", "a\b", "a\r", "\x1b]a", "\x1b[" + ";" * 50 + "m"]
)
def test_what_commands_print_is_colored_as_far_as_it_is_read(unit: str) -> None:
    """UI-10: two million characters of control sequences are colored up to a limit."""
    started = thread_time()
    drawn = screen(unit * (2_000_000 // len(unit)))
    assert thread_time() - started < 5 * BUDGET  # in a thread
    assert len(drawn.shown) + len(drawn.rest) <= 2_500_000
    assert "\x1b" not in drawn.shown + drawn.rest


@pytest.mark.parametrize("text", ["[" + "0," * 999_999 + "0]", "[" * 38 + "0,0," * 20_000 + "0" + "]" * 38])
def test_json_is_laid_out_as_far_as_that_helps(text: str) -> None:
    """UI-10: two million characters of JSON, and JSON that would be mostly indentation, are laid out up to a limit."""
    started = thread_time()
    drawn = output(text, in_color=True)
    assert thread_time() - started < 2 * BUDGET
    assert len(drawn.shown) + len(drawn.rest) <= MAX_TIMES * len(text)


def test_an_answer_of_everyday_length_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary answer stays within the budget and is rendered in the same process."""
    monkeypatch.setattr(render, "_processes", None)
    draw_all(ANSWER)  # loads the lexers
    text = "".join(f"{ANSWER}\n\nAnd again, {number}.\n\n" for number in range(4))
    assert render.blocks(text) == draw_all(text)


@pytest.mark.parametrize("reason", ["cpu", "busy"])
def test_the_first_result_is_shown_if_a_second_drawing_fails(monkeypatch: pytest.MonkeyPatch, reason: Reason) -> None:
    """LIVE-01: two pages render one text at the same time, and only one result is within the limits. It is shown."""
    text = f"*{reason}* " * 10

    class Overtaken:
        def run(self, function: str, *args: object) -> list[bytes]:
            render.remember(text, first)
            raise WorkFailed(reason)

    first = draw_all(text)
    monkeypatch.setattr(render, "_processes", Overtaken())
    monkeypatch.setattr(render, "IN_THREAD", Allowance(0.0))
    assert render.blocks(text) == first
