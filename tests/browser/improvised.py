"""A model with random responses: Markdown, reasoning, tool calls, questions and errors, with pauses."""

from __future__ import annotations

import json
from random import Random

from agents.messages import Json
from tests.browser.test_questions import ACTIONS, CONFIRMATION, FEEDBACK, FORM, PLAN, SELECTION, SUM
from tests.wire import openai
from tests.wire.script import Cut, Pause, Reply, Step

WORDS = (
    "Hello ", "**bold** ", "`code` ", "\n\n", "- item\n", "\n# Title\n\n", "😀 ", "你好 ", "[a](https://example.org) ",
    "<i>no</i> ", "\n\n```python\nprint(1)\nprint(2)\n```\n\n", "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n", "e\u0301 ",
    "$x^2$ ", "> quoted\n\n", "1. one\n2. two\n\n", "~~gone~~ ", "a[^1] ", "\n\n[^1]: A note.\n\n",
    "@bo ", "@helper ",
)  # fmt: skip
DELEGATE = ("agent__helper", {"task": "Look it up"})
FETCH = ("web_fetch", {"url": "http://127.0.0.1:1/"})
UNKNOWN = ("no_such_tool", {"a": 1})
CALLS = (SUM, SUM, SUM, SUM, SELECTION, CONFIRMATION, PLAN, FEEDBACK, ACTIONS, FORM, DELEGATE, FETCH, UNKNOWN)
MAX_ROUNDS = 3


class Improvised:
    """Random replies for `WireServer.improvise`. `asked` counts them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.asked = 0
        self.body: Json = {}

    def __call__(self, body: Json) -> Reply:
        self.asked += 1
        self.body = body
        chance = self.chance
        kind = chance.random()
        if kind < 0.05:
            return openai.error(chance.choice([400, 401, 429, 500]), "The model is having a bad day.")
        steps = openai.sse(openai.role(), done=False)
        if kind < 0.3:
            steps += openai.sse(*openai.reasoning(*self._pieces(5)), done=False)
        written: list[Step] = [*steps]
        if kind > 0.1:
            for piece in self._pieces(14):
                written += openai.sse(*openai.text(piece), done=False)
                if chance.random() < 0.3:
                    written.append(Pause(chance.choice([0.01, 0.03, 0.1])))
        if kind > 0.97:
            return Reply([*written, Cut()])
        return Reply([*written, *self._end()])

    def _pieces(self, most: int) -> list[str]:
        return [self.chance.choice(WORDS) for _ in range(self.chance.randrange(1, most))]

    def _end(self) -> list[bytes]:
        usage = openai.usage(self.chance.randrange(900), self.chance.randrange(100))
        if not self.may_call() or self.chance.random() < 0.5:
            return openai.sse(*openai.text("."), openai.finish(), usage)
        calls = [self.chance.choice(CALLS) for _ in range(self.chance.choice([1, 1, 1, 2, 4, 6]))]
        calls = calls if self.chance.random() < 0.6 else [SUM] * len(calls)
        chunks = [
            chunk
            for number, (name, arguments) in enumerate(calls)
            for chunk in openai.tool_call(number, f"call_{self.asked}_{number}", name, json.dumps(arguments))
        ]
        return openai.sse(*chunks, openai.finish("tool_calls"), usage)

    def may_call(self) -> bool:
        """Return whether the present request allows tool calls and the turn has fewer than MAX_ROUNDS rounds."""
        if not self.body.get("tools") or self.body.get("tool_choice") == "none":
            return False
        rounds = 0
        for message in reversed(self.body["messages"]):
            if message["role"] == "user":
                break
            rounds += message["role"] == "assistant"
        return rounds < MAX_ROUNDS
