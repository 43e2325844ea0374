"""What an endpoint takes for a model, learned from what it has refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.messages import Json

# How servers say that they do not know a parameter, or not this value of it.
NOT_TAKEN = re.compile(
    r"(?i)unsupported|not supported|(does|do) not support|unrecognized|unknown|unexpected|extra|not permitted"
    r"|not allowed|deprecated|must be verified|supported values"
)


@dataclass(frozen=True)
class Dialect:
    """What differs between endpoints and models.

    `omitted`: parameters that are left out, nested ones with dots. `limit_field`: the name of the output limit in Chat
    Completions. `responses`: OpenAI's Responses API is asked instead of Chat Completions. `reasoning_with_tools`: Chat
    Completions takes both in one request. `budgets`: Anthropic's models take a thinking budget.
    """

    omitted: frozenset[str] = frozenset()
    limit_field: str = "max_tokens"
    responses: bool = False
    reasoning_with_tools: bool = True
    budgets: bool = True


USUAL = Dialect()


@dataclass(frozen=True)
class Refusal:
    """A request that was refused with its status: what the server says, and which parameter it names, if any."""

    status: int
    message: str
    param: str = ""
    code: str = ""

    @classmethod
    def of(cls, status: int, body: object, text: str) -> Refusal:
        """Read an error body: {"error": {…}}, or the same without the outer object. `text` stands for any other."""
        inner = body.get("error", body) if isinstance(body, Mapping) else {}
        known = inner if isinstance(inner, Mapping) else {}
        texts = {name: known[name] for name in ("message", "param", "code") if isinstance(known.get(name), str)}
        return cls(status, texts.get("message") or text, texts.get("param", ""), texts.get("code", ""))


def without_refused(dialect: Dialect, refusal: Refusal, body: Json, needed: Collection[str]) -> Dialect:
    """Leave out what a refusal names of a request's body, but nothing that is `needed`.

    Returns the same dialect where the refusal is about something else.
    """
    if not NOT_TAKEN.search(f"{refusal.message} {refusal.code}"):
        return dialect
    for path in sorted(_paths(body, needed), key=len, reverse=True):
        if path == refusal.param or _names(refusal.message, path):
            return replace(dialect, omitted=dialect.omitted | {path})
    return dialect


def without(body: Json, omitted: Collection[str]) -> Json:
    """Copy a body without these parameters; an object that has nothing left goes too."""
    for path in omitted:
        name, _dot, rest = path.partition(".")
        if rest and isinstance(body.get(name), dict):
            inner = without(body[name], [rest])
            body = {**body, name: inner} if inner else _less(body, name)
        elif not rest:
            body = _less(body, name)
    return body


def difference(before: Dialect, after: Dialect) -> str:
    """Say for the log how a model is asked from now on."""
    changes = [f"without {name}" for name in sorted(after.omitted - before.omitted)]
    if after.limit_field != before.limit_field:
        changes.append(f"with {after.limit_field}")
    if after.responses != before.responses:
        changes.append(f"over {'the Responses API' if after.responses else 'Chat Completions'}")
    if after.reasoning_with_tools != before.reasoning_with_tools:
        changes.append("without reasoning where there are tools")
    if after.budgets != before.budgets:
        changes.append("with adaptive thinking in place of a budget")
    return ", ".join(changes)


def _less(body: Json, name: str) -> Json:
    return {key: value for key, value in body.items() if key != name}


def _paths(body: Mapping[str, Any], needed: Collection[str]) -> Iterator[str]:
    for name, value in body.items():
        if name not in needed:
            yield name
            if isinstance(value, Mapping):
                yield from (f"{name}.{inner}" for inner in value if f"{name}.{inner}" not in needed)


def _names(message: str, path: str) -> bool:
    """Whether a message is about a parameter: by its full name, or by its last part where that is marked as one.

    An object with a tag may be named with the tag in between: `thinking.adaptive.display`.
    """
    outer, _dot, last = path.rpartition(".")
    full = rf"{re.escape(outer)}\.(\w+\.)?{re.escape(last)}" if outer else re.escape(last)
    quoted, marked = rf"['\"`]({full}|{last})['\"`]", rf"\b{last} parameter\b|(parameter|supplied): {last}\b"
    # Without a mark only what is no word of prose.
    plain = rf"(?<![\w.]){full}\b" if "_" in path or outer else rf"^{full}:"
    return any(re.search(form, message) for form in (quoted, marked, plain))
