"""The parameters that an endpoint accepts for a model, learned from the requests that it has refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.messages import Json
from agents.providers.failures import failure_in, message_of

# Matches messages in which servers refuse a parameter or its value.
NOT_TAKEN = re.compile(
    r"(?i)unsupported|not supported|(does|do) not support|unrecognized|unknown|unexpected|extra|not permitted"
    r"|not allowed|deprecated|must be verified|supported values"
)
# Matches Anthropic's refusals of reasoning, which routers quote. The signature of reasoning is valid only for its model
# and for the conversation before it. Users may change both. Whether a turn may contain reasoning depends on whether it
# thinks.
REFUSED_THINKING = (
    r"(?is)`?signature`? in `?thinking`? block|`?thinking`?.{0,60}blocks?.{0,120}cannot be modified"
    r"|cannot contain `?thinking`?|expected `?thinking`?"
)


@dataclass(frozen=True)
class Dialect:
    """The differences between endpoints and models.

    `omitted`: the parameters to leave out; nested ones are written with dots. `limit_field`: the name of the output
    limit in Chat Completions. `responses`: use OpenAI's Responses API instead of Chat Completions.
    `reasoning_with_tools`: Chat Completions accepts both in one request. `budgets`: the model, one of Anthropic's,
    accepts a thinking budget. `call_ids`: the ids of tool calls that Chat Completions accepts: any, those of up to 40
    characters (OpenAI), or those of nine letters and digits (Mistral). `all_reasoning`: Chat Completions requires the
    reasoning of all earlier answers (DeepSeek, Kimi), not only that of the current turn. `strict_order`: Chat
    Completions refuses system messages in mid-conversation (Qwen), and user messages directly after results (Mistral).
    `system_role`: Chat Completions accepts system messages at all (Gemma 2 does not). `signed_calls`: Chat Completions
    requires a signature in the calls of the current turn, also in those of other models (Gemini).
    """

    omitted: frozenset[str] = frozenset()
    limit_field: str = "max_tokens"
    responses: bool = False
    reasoning_with_tools: bool = True
    budgets: bool = True
    call_ids: Literal["any", "short", "nine"] = "any"
    all_reasoning: bool = False
    strict_order: bool = False
    system_role: bool = True
    signed_calls: bool = False


USUAL = Dialect()


@dataclass(frozen=True)
class Refusal:
    """The server's refusal of a request. `param` is the parameter that it names, or ""."""

    status: int
    message: str
    param: str = ""
    code: str = ""

    @classmethod
    def of(cls, status: int, body: object, text: str) -> Refusal:
        """Read an error body. If it has no message, use `text`."""
        failure = failure_in(body)
        known = failure if isinstance(failure, Mapping) else {}
        texts = {name: known[name] for name in ("message", "param", "code") if isinstance(known.get(name), str)}
        message = message_of(known) if texts.get("message") else text
        return cls(status, message, texts.get("param", ""), texts.get("code", ""))


def omit_refused_parameter(dialect: Dialect, refusal: Refusal, body: Json, needed: Collection[str]) -> Dialect:
    """Return the dialect without the parameter of the request's body that a refusal names.

    Parameters in `needed` are never left out. Return the same dialect if the refusal has another reason.
    """
    if not NOT_TAKEN.search(f"{refusal.message} {refusal.code}"):
        return dialect
    for path in sorted(_paths(body, needed), key=len, reverse=True):
        if path == refusal.param or _is_named_in(refusal.message, path):
            return replace(dialect, omitted=dialect.omitted | {path})
    return dialect


def without(body: Json, omitted: Collection[str]) -> Json:
    """Return a copy of a body without these parameters. An object that becomes empty is removed, too."""
    for path in omitted:
        name, _dot, rest = path.partition(".")
        if rest and isinstance(body.get(name), dict):
            inner = without(body[name], [rest])
            body = {**body, name: inner} if inner else _less(body, name)
        elif not rest:
            body = _less(body, name)
    return body


def difference(before: Dialect, after: Dialect) -> str:
    """Describe, for the log, how requests to a model change."""
    changes = [f"without {name}" for name in sorted(after.omitted - before.omitted)]
    if after.limit_field != before.limit_field:
        changes.append(f"with {after.limit_field}")
    if after.responses != before.responses:
        changes.append(f"over {'the Responses API' if after.responses else 'Chat Completions'}")
    if after.reasoning_with_tools != before.reasoning_with_tools:
        changes.append("without reasoning where there are tools")
    if after.budgets != before.budgets:
        changes.append("with adaptive thinking in place of a budget")
    if after.call_ids != before.call_ids:
        changes.append("with other ids of tool calls")
    if after.all_reasoning != before.all_reasoning:
        changes.append("with the reasoning of earlier turns")
    if after.strict_order != before.strict_order:
        changes.append("with messages in a stricter order")
    if after.system_role != before.system_role:
        changes.append("with the system prompt in the first user message")
    if after.signed_calls != before.signed_calls:
        changes.append("with signatures in the calls of other models")
    return ", ".join(changes)


def _less(body: Json, name: str) -> Json:
    return {key: value for key, value in body.items() if key != name}


def _paths(body: Mapping[str, Any], needed: Collection[str]) -> Iterator[str]:
    for name, value in body.items():
        if name not in needed:
            yield name
            if isinstance(value, Mapping):
                yield from (f"{name}.{inner}" for inner in value if f"{name}.{inner}" not in needed)


def _is_named_in(message: str, path: str) -> bool:
    """Return whether a message names a parameter: its full name, or its last part if quoted or marked as a parameter.

    A server may insert the tag of a nested object, such as `adaptive` in `thinking.adaptive.display`.
    """
    outer, _dot, last = path.rpartition(".")
    full = rf"{re.escape(outer)}\.(\w+\.)?{re.escape(last)}" if outer else re.escape(last)
    quoted, marked = rf"['\"`]({full}|{last})['\"`]", rf"\b{last} parameter\b|(parameter|supplied): {last}\b"
    # Without quotes or a mark, match only names that cannot be words of the sentence, or the name at its beginning.
    plain = rf"(?<![\w.]){full}\b" if "_" in path or outer else rf"^{full}:"
    return any(re.search(form, message) for form in (quoted, marked, plain))
