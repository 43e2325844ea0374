"""The provider of the demo agent. A keyword in the user's last message selects the answer; there is no model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from agents.errors import ConnectionLost, Overloaded, RequestRejected
from agents.events import ProviderEvent, ReasoningDelta, ToolCallDelta, Usage
from agents.foreign_text import unmarked
from agents.messages import File, Message, Text, ToolCall, ToolResult
from agents.providers.base import ListedModel, Request
from agents.providers.demo import chinese, texts
from agents.providers.scripted import Pause, Reply, Sign, Step, play

MODEL = "demo"
TOKENS_PER_SECOND = 40.0
FIRST_TOKEN_SECONDS = 0.3
SLOW_SECONDS = 20.0

_TOKEN = re.compile(r"\s*[^\s一-鿿]+|\s*[一-鿿]{1,2}|\s+")
_PATH = re.compile(r"[\w./-]{1,100}")
_CHINESE = re.compile(r"[一-鿿]")
# The label before a file, or before the file's content if it is sent as text.
_LABEL = re.compile(r"(?:\[[^\[\]\n]{1,80}\] )?\[(?:Image|PDF|File) (?P<name>[^\[\]\n]+)\](?P<text>\n)?")
# CTX-07: a request for a summary has the conversation between these tags, each message below its author.
_TO_SUMMARIZE = re.compile(
    r"(?:<summary_so_far>\n(?P<before>.*)\n</summary_so_far>\n\n)?<conversation>\n(?P<text>.*)\n</conversation>\n\n[^\n]+",
    re.DOTALL,
)
_SAID = re.compile(r"^## User(?: \((?P<name>[^\n]+)\))?\n(?P<text>.+?)(?=\n\n## |\Z)", re.DOTALL | re.MULTILINE)
# CTX-06: in a shared session, the context has the sender's name before the text.
_SPEAKER = re.compile(r"\[(?P<name>[^\[\]\n]{1,80})\]:?\s+")
# In a session with several agents, the system prompt has the agent's name. Other names after an @ may be people.
_AGENT = re.compile(r"^You are (?P<title>.+) \(@(?P<name>\S+)\), one of several agents", re.MULTILINE)
_MENTION = re.compile(r"(?<![A-Za-z0-9_.@])@(?=\w)")


class DemoProvider:
    """A provider with one scripted model. It has no state: each answer depends only on its request.

    `tokens_per_second` is the speed of the stream; with 0, everything is sent without pauses.
    """

    def __init__(self, name: str = "demo", tokens_per_second: float = TOKENS_PER_SECOND) -> None:
        self.name = name
        self._tokens_per_second = tokens_per_second

    def prepare(self) -> None:
        """Do nothing: there is nothing to load."""

    async def stream(self, request: Request) -> AsyncGenerator[ProviderEvent, None]:
        async for event in play(_pace(_answer(request), request, self._tokens_per_second), self.name):
            yield event

    async def list_models(self) -> dict[str, ListedModel]:
        return {MODEL: ListedModel()}

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The user's last message, and the tool calls and results after it. `rest` is the text after the command word."""

    text: str
    command: str
    rest: str
    speaker: str
    files: tuple[str, ...]
    results: tuple[ToolResult, ...]
    calls: tuple[ToolCall, ...]
    request: Request = field(repr=False)

    @property
    def is_chinese(self) -> bool:
        return _CHINESE.search(self.text) is not None

    def words(self, words: str) -> str:
        """Return words of the demo agent in the language of the message."""
        return _in_language_of(self.text, words)


def _answer(request: Request) -> Reply:
    if request.system.startswith(texts.SUMMARIZER) and (asked := _TO_SUMMARIZE.fullmatch(_last_words(request))):
        return [_summary(asked["before"] or "", asked["text"])]
    question = _question(request)
    if request.tool_choice == "none":
        return [question.words(texts.ROUND_LIMIT)]
    if question.results:
        return _with_results(question)
    if question.command:
        return _COMMANDS[question.command](question)
    if question.files:
        return [question.words(texts.SEEN).format(files="\n".join(f"- {file}" for file in question.files))]
    return [question.words(texts.HELP)]


def _last_words(request: Request) -> str:
    return _last_text(request.messages[-1]) if request.messages and request.messages[-1].text else ""


def _summary(before: str, conversation: str) -> str:
    """Return a list of the users' latest messages, together with the lines of an earlier summary."""
    said = [
        f"{found['name']}: {found['text']}" if found["name"] else found["text"]
        for found in _SAID.finditer(conversation)
    ]
    kept = [line.removeprefix("- ") for line in before.splitlines() if line.startswith("- ")]
    short = [shorten(line, texts.MAX_SAID_LENGTH, placeholder=" …") for line in [*kept, *said]]
    lines = "\n".join(f"- {line}" for line in short[-texts.MAX_SAID :])
    return _in_language_of(lines, texts.SUMMARY).format(lines=lines).strip()


def _in_language_of(text: str, words: str) -> str:
    """Return words of the demo agent in Chinese if a text contains Chinese."""
    return chinese.TEXTS.get(words, words) if _CHINESE.search(text) else words


def _question(request: Request) -> _Question:
    new, since = _new_messages(request.messages)
    message = _addressed(new, request.system)
    asked = _last_text(message) if message else ""
    speaker = _SPEAKER.match(asked)
    text = asked[speaker.end() :] if speaker else asked
    command = _COMMAND.search(text)
    return _Question(
        text=text,
        command=command[0].lower() if command else "",
        rest=text[command.end() :].strip(" :：\n") if command else "",
        speaker=speaker["name"] if speaker else "",
        files=tuple(_files(message)) if message else (),
        results=tuple(unmarked(result) for message in since for result in message.tool_results),
        calls=tuple(call for message in since for call in message.tool_calls),
        request=request,
    )


def _new_messages(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return the last users' messages that no answer is between, and the messages after them."""
    end = next((at for at in range(len(messages), 0, -1) if _is_from_user(messages[at - 1])), 0)
    start = next((at for at in range(end, 0, -1) if not _is_from_user(messages[at - 1])), 0)
    return messages[start:end], messages[end:]


def _is_from_user(message: Message) -> bool:
    return message.role == "user" and bool(message.text)


def _addressed(messages: Sequence[Message], system: str) -> Message | None:
    """Return the message that the agent has to answer (RUN-17): the last that mentions it, or else the last for anyone.

    A provider does not know which names are agents, so a message that mentions only others counts if it has a command.
    """
    written = [message for message in messages if not _last_part(message).foreign]  # not a summary
    agent = _AGENT.search(system)
    names = [agent["name"], agent["title"]] if agent else []
    tests: list[Callable[[str], object]] = [
        *(_mention_of(name).search for name in [*names, "agent"]),
        lambda text: not _MENTION.search(text),
        _COMMAND.search,
    ]
    found = (message for test in tests for message in reversed(written) if test(_last_text(message)))
    return next(found, messages[-1] if messages else None)


def _mention_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"{_MENTION.pattern}(?<=@){re.escape(name)}(?![A-Za-z0-9_-])", re.IGNORECASE)


def _last_text(message: Message) -> str:
    """Return the user's own text, which comes after the files, or "" if the message has only files."""
    last = _last_part(message).text
    return "" if _LABEL.match(last) else last


def _last_part(message: Message) -> Text:
    return [part for part in message.parts if isinstance(part, Text)][-1]


def _files(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, File):
            yield texts.SEEN_FILE.format(name=part.name, about=part.about)
        elif isinstance(part, Text) and (label := _LABEL.match(part.text)) and label["text"]:
            between_fences = " ".join(part.text.splitlines()[2:-1])
            yield texts.READ_FILE.format(name=label["name"], count=len(between_fences.split()))


def _with_results(question: _Question) -> Reply:
    results = {result.call_id: result for result in question.results}
    if sources := [source for result in question.results for source in result.sources]:
        found = "\n".join(f"- {source.title} [{source.number}]" for source in dict.fromkeys(sources))
        return [question.words(texts.FOUND).format(found=found)]
    failed = question.words(texts.FAILED)
    lines = [texts.result_line(call, results[call.id], failed) for call in question.calls if call.id in results]
    return [question.words(texts.TOOL_ANSWER).format(results="\n".join(lines))]


def _think(question: _Question) -> Reply:
    thoughts, answer = question.words(texts.THOUGHTS), question.words(texts.THOUGHT_ANSWER)
    return [*map(ReasoningDelta, _TOKEN.findall(thoughts)), Sign({"signature": "demo"}), answer]


def _tools(question: _Question) -> Reply:
    wanted = [
        ToolCall(_call_id(question, 1), "current_time", {"timezone": "UTC"}),
        ToolCall(_call_id(question, 2), "calculator", {"expression": "2 ** 32"}),
        ToolCall(_call_id(question, 3), "calculator", {"expression": "sqrt(2) * 100"}),
    ]
    return _calls(question, wanted, texts.BEFORE_TOOLS)


def _calculate(question: _Question) -> Reply:
    expression = question.rest or "6 * 7"
    call = ToolCall(_call_id(question, 1), "calculator", {"expression": expression})
    return _calls(question, [call], texts.BEFORE_CALCULATOR)


def _ask(question: _Question) -> Reply:
    form, choice = (chinese.LUNCH, chinese.PAYMENT) if question.is_chinese else (texts.LUNCH, texts.PAYMENT)
    wanted = [ToolCall(_call_id(question, 1), "form", form), ToolCall(_call_id(question, 2), "selection", choice)]
    return _calls(question, wanted, texts.BEFORE_QUESTIONS)


def _plan(question: _Question) -> Reply:
    plan = chinese.PLAN if question.is_chinese else texts.PLAN
    return _calls(question, [ToolCall(_call_id(question, 1), "plan_review", plan)], texts.BEFORE_PLAN)


def _bash(question: _Question) -> Reply:
    command = question.rest or "for number in 1 2 3 4 5; do echo Line $number; sleep 1; done"
    call = ToolCall(_call_id(question, 1), "bash", {"command": command})
    return _calls(question, [call], texts.BEFORE_BASH, texts.NO_BASH)


def _mcp(question: _Question) -> Reply:
    wanted = [
        ToolCall(_call_id(question, 1), "example__roll_dice", {"count": 3}),
        ToolCall(_call_id(question, 2), "example__draw_chart", {"values": [3, 1, 4, 1, 5, 9, 2, 6]}),
        ToolCall(_call_id(question, 3), "example__count_slowly", {"to": 5}),
    ]
    return _calls(question, wanted, texts.BEFORE_MCP, texts.NO_MCP)


def _find(question: _Question) -> Reply:
    query = question.rest or "parley"
    call = ToolCall(_call_id(question, 1), "search_knowledge", {"query": query})
    return _calls(question, [call], texts.BEFORE_FIND, texts.NO_FIND)


def _draft(question: _Question) -> Reply:
    path = _PATH.match(question.rest)
    file = {"path": path[0] if path else "example.py", "content": question.words(texts.FILE)}
    call = ToolCall(_call_id(question, 1), "write_file", file)
    return _calls(question, [call], texts.BEFORE_DRAFT, texts.NO_DRAFT)


def _call_id(question: _Question, number: int) -> str:
    return f"demo_{len(question.request.messages)}_{number}"


def _calls(question: _Question, calls: list[ToolCall], introduction: str, without_tools: str = texts.NO_TOOLS) -> Reply:
    available = {spec.name for spec in question.request.tools}
    usable = [call for call in calls if call.name in available]
    return [question.words(introduction), *usable] if usable else [question.words(without_tools)]


def _error(question: _Question) -> Reply:
    kind = question.rest.lower()
    if kind.startswith("mid"):
        return [question.words(texts.BEFORE_ERROR), ConnectionLost(question.words(texts.ERROR_MID))]
    if kind.startswith("busy"):
        return [Overloaded(question.words(texts.ERROR_BUSY), retry_after=1.0)]
    return [RequestRejected(question.words(texts.ERROR))]


def _slow(question: _Question) -> Reply:
    tokens = _TOKEN.findall(question.words(texts.SLOW))
    return [step for token in tokens for step in (Pause(SLOW_SECONDS / len(tokens)), token)]


def _echo(question: _Question) -> Reply:
    return [question.rest or question.words(texts.NOTHING_TO_ECHO)]


def _who(question: _Question) -> Reply:
    words = question.words(texts.WHO if question.speaker else texts.WHO_UNKNOWN)
    return [words.format(speaker=question.speaker)]


def _say(text: str) -> Callable[[_Question], Reply]:
    return lambda question: [question.words(text)]


_COMMANDS: dict[str, Callable[[_Question], Reply]] = {
    "help": _say(texts.HELP),
    "table": _say(texts.MARKDOWN),
    "markdown": _say(texts.MARKDOWN),
    "think": _think,
    "tools": _tools,
    "calculate": _calculate,
    "ask": _ask,
    "plan": _plan,
    "bash": _bash,
    "draft": _draft,
    "find": _find,
    "mcp": _mcp,
    "slow": _slow,
    "long": _say(texts.LONG),
    "error": _error,
    "echo": _echo,
    "who": _who,
}
# In simplified and, where it differs, in traditional characters.
_CHINESE_WORDS = {
    "help": ("帮助", "幫助"),
    "table": ("表格",),
    "think": ("思考",),
    "tools": ("工具",),
    "calculate": ("计算", "計算"),
    "ask": ("提问", "提問"),
    "plan": ("计划", "計劃", "計畫"),
    "bash": ("命令",),
    "draft": ("草稿",),
    "find": ("查找", "尋找"),
    "slow": ("慢慢说", "慢慢說"),
    "long": ("长文", "長文"),
    "error": ("错误", "錯誤"),
    "echo": ("复述", "複述"),
    "who": ("我是谁", "我是誰"),
}
_COMMANDS |= {word: _COMMANDS[name] for name, words in _CHINESE_WORDS.items() for word in words}


_COMMAND = re.compile("|".join(rf"(?<![a-z]){word}(?![a-z])" for word in _COMMANDS), re.IGNORECASE)


def _pace(reply: Reply, request: Request, tokens_per_second: float) -> Iterator[Step]:
    """Split texts into tokens with a pause before each, and end with the usage."""
    paced = tokens_per_second > 0
    sent = 0
    yield from [Pause(FIRST_TOKEN_SECONDS)] if paced else []
    for step in _tokens(reply):
        if isinstance(step, Pause):
            yield from [step] if paced else []
            continue
        if isinstance(step, str | ReasoningDelta | ToolCallDelta | ToolCall):
            sent += 1
            yield from [Pause(1 / tokens_per_second)] if paced else []
        yield step
    yield _usage(request, sent)


def _tokens(reply: Reply) -> Iterator[Step]:
    for step in reply:
        if isinstance(step, str):
            yield from _TOKEN.findall(step)
            continue
        if isinstance(step, ToolCall) and step.name == "write_file":
            written = json.dumps(step.arguments, ensure_ascii=False)
            yield from (ToolCallDelta(step.id, step.name, token) for token in _TOKEN.findall(written))
        yield step


def _usage(request: Request, output_tokens: int) -> Usage:
    sizes = [_size(message) for message in request.messages]
    base = (len(request.system) + sum(len(spec.description) for spec in request.tools)) // 4
    cached = base + sum(sizes[:-1]) if len(sizes) > 1 else 0
    return Usage(base + sum(sizes), output_tokens, cache_read_tokens=cached, cache_write_tokens=0)


def _size(message: Message) -> int:
    return 4 + sum(len(getattr(part, "text", "") or getattr(part, "content", "")) for part in message.parts) // 4
