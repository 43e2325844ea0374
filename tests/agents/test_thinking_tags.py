"""Reasoning between tags at the beginning of an answer."""

from __future__ import annotations

import itertools
import time

import pytest

from agents.thinking_tags import ThinkingSplitter, without_thinking

ANSWERS = {
    "reasoning and answer": ("\n<think>\na\n</think>\n\nb", "a\n", "b"),
    "no reasoning": ("<think>\n\n</think>\n\nb", "", "b"),
    "no answer": ("<think>a", "a", ""),
    "beginning of the closing tag": ("<think>a </thi> </", "a </thi> </", ""),
    "tag in the answer": ("b <think>a</think>", "", "b <think>a</think>"),
    "second tag": ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    "opening tag in the reasoning": ("<think>a<think>c</think>b", "a<think>c", "b"),
    "beginning of the opening tag": (" <thi", "", " <thi"),
    "other tag": ("<thinking>a", "", "<thinking>a"),
    "white space": (" \n ", "", " \n "),
}


def split(pieces: list[str]) -> tuple[str, str]:
    splitter = ThinkingSplitter()
    found = [*itertools.chain.from_iterable(map(splitter.split, pieces)), splitter.end()]
    return "".join(text for text, thinks in found if thinks), "".join(text for text, thinks in found if not thinks)


@pytest.mark.parametrize("answer", ANSWERS)
def test_reasoning_is_found_however_the_answer_is_cut(answer: str) -> None:
    """UI-01: only a tag at the beginning of the answer opens reasoning, also if it arrives in pieces."""
    text, *expected = ANSWERS[answer]
    cuts = itertools.combinations(range(len(text) + 1), 2)
    cases = [[text[:first], text[first:second], text[second:]] for first, second in cuts]
    assert {split(pieces) for pieces in [*cases, list(text)]} == {tuple(expected)}


def test_text_after_white_space_is_not_held_back() -> None:
    """RUN-02: an answer that begins with much white space is shown without waiting for a tag."""
    assert list(ThinkingSplitter().split(" " * 200)) == [(" " * 200, False)]


@pytest.mark.parametrize("begin", ["", "<think>"])
def test_time_of_a_piece_does_not_depend_on_the_text_before(begin: str) -> None:
    """RUN-02: a long answer, or long reasoning, is split in linear time."""
    splitter = ThinkingSplitter()
    list(splitter.split(begin + "x" * 10_000_000))
    began = time.perf_counter()
    for _ in range(1000):
        list(splitter.split("<x "))
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Rome", "Rome"),
        ("<think>\nx\n</think>\n\nRome", "Rome"),
        ("Okay, a title.\n</think>\n\nRome", "Rome"),
        ("The tags are `<think>` and\n</think>\n", "The tags are `<think>` and\n</think>\n"),
        ("It ends with `</think>`.", "It ends with `</think>`."),
    ],
)
def test_reasoning_is_removed_from_a_whole_reply(reply: str, answer: str) -> None:
    """CTX-07: a title or a summary does not contain reasoning, also if the opening tag is in the model's template."""
    assert without_thinking(reply) == answer
