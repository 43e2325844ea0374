"""A reference client of the page protocol that applies frames to plain values, as the browser's scripts do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.messages import Json
from tests.support.client import editors_in

SAID = {"user", "assistant", "reasoning", "tool_group", "note"}
UNFINISHED = ("streaming", "running", "pending", "waiting", "queued")
_REVISION = re.compile(r'data-revision="(\d+)"')
_SEQUENCE = re.compile(r'data-sequence="\d+"')
_CLASS = re.compile(r'class="([^"]*)"')
_EXCLUDED_MARK = re.compile(r'<span class="excluded-mark">.*? · </span>', re.DOTALL)
_MARKED = re.compile(r'<p class="meta">|<div class="marker note [^>]*>')
_STATUS = re.compile(r'data-status="(\w+)"')


@dataclass
class Body:
    """A streaming text as the page shows it: finished blocks, and the tail, which is counted in UTF-16 units."""

    n: int
    rev: int
    blocks: list[str]
    tail: str
    ended: bool = False


@dataclass
class Article:
    sequence: int | None
    html: str

    def moves(self, shift: Json) -> bool:
        """Return whether a shift applies to this article. It does not if the article was rendered after the shift."""
        read = _REVISION.search(self.html)
        is_known = read is not None and int(read[1]) >= shift["revision"]
        return self.sequence is not None and self.sequence >= shift["from"] and not is_known

    def changes(self, frame: Json) -> bool:
        """Return whether the frame adds or removes the mark of this article as excluded."""
        read, kind = _REVISION.search(self.html), _CLASS.search(self.html)
        if read is None or kind is None or int(read[1]) >= frame["revision"] or not SAID & set(kind[1].split()):
            return False
        there = any(first <= (self.sequence or 0) <= last for first, last in frame["places"])
        return there and ("excluded" in kind[1].split()) == frame["included"]

    def include(self, frame: Json) -> None:
        kind = _CLASS.search(self.html)
        assert kind is not None
        kinds = kind[1].removesuffix(" excluded") if frame["included"] else f"{kind[1]} excluded"
        self.html = _CLASS.sub(f'class="{kinds}"', self.html, count=1)
        self.html = _REVISION.sub(f'data-revision="{frame["revision"]}"', self.html, count=1)
        if frame["included"]:
            self.html = _EXCLUDED_MARK.sub("", self.html, count=1)
        else:
            self.html = _MARKED.sub(lambda found: f"{found[0]}{frame['mark']}", self.html, count=1)

    @property
    def is_over(self) -> bool:
        found = _STATUS.search(self.html)
        return found is None or found[1] not in UNFINISHED


@dataclass
class PageClient:
    """The state of a page on `/ws/sessions/<id>/page`, without input or output.

    Pass each frame to `receive`. While `wants_sync` is true, send `sync()`.
    """

    revision: int = 0
    articles: dict[str, Article] = field(default_factory=dict)
    bodies: dict[str, Body] = field(default_factory=dict)
    # The blocks of each text when its stream ended, with the article that ended it. Later edits may change the article.
    drawn: list[tuple[list[str], str]] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    status: str = ""
    typing: list[str] = field(default_factory=list)
    editors: dict[str, list[str]] = field(default_factory=dict)
    wants_sync: bool = True
    asking: bool = False
    caught_up: int = 0
    reload: bool = False
    others: list[Json] = field(default_factory=list)
    _syncing: bool = False

    def reconnected(self) -> None:
        self.wants_sync, self.asking, self._syncing = True, False, False
        self.editors = {}

    def sync(self) -> Json:
        """Return the sync command to send now."""
        self.wants_sync, self.asking = False, True
        have = {id: {"blocks": len(body.blocks), "rev": body.rev} for id, body in self.bodies.items()}
        return {"type": "sync", "since": self.revision, "have": have}

    def receive(self, frame: Json | list[Any]) -> None:
        """Apply one frame."""
        if isinstance(frame, list):
            self._short(frame)
            return
        match frame.get("op"):
            case None | "pong" | "cancelled" | "rail" | "people":
                self.others.append(frame)
            case "resync":
                self.wants_sync = True
            case "head":
                self.wants_sync |= frame["revision"] > self.revision
            case "reload":
                self.reload = True
            case "syncing":
                self._syncing = True
            case "synced":
                self._synced(frame)
            case _:
                if self._is_next(frame):
                    self._apply(frame)

    def _is_next(self, frame: Json) -> bool:
        revision = frame.get("revision")
        if revision is None or self._syncing:
            return True
        if revision > self.revision + 1:
            self.wants_sync = True
        if revision != self.revision + 1:
            return False
        self.revision = revision
        return True

    def _synced(self, frame: Json) -> None:
        self._syncing = self.asking = False
        self.revision = max(self.revision, frame["revision"])
        self.caught_up += 1
        if any(id in self.articles and id not in self.bodies for id in frame["streaming"]):
            self.wants_sync = True

    def _apply(self, frame: Json) -> None:
        match frame["op"]:
            case "message":
                self._message(frame)
            case "remove":
                self.articles.pop(frame["id"], None)
                self.bodies.pop(frame["id"], None)
            case "shift":
                self._shift(frame)
            case "context":
                self._include(frame)
            case "session":
                self.parts.update(frame["parts"])
                self.status = frame["status"]
            case "status":
                self.parts["status"] = frame["html"]
                self.status = frame["status"]
            case "presence" | "typing":
                if frame["op"] == "presence":
                    self.parts["presence"] = frame["html"]
                self.typing = [person["name"] for person in frame["typing"]]
            case "editing":
                self.editors = editors_in(frame)
            case "usage":
                self.parts["usage"] = frame["html"]
            case "snap":
                self._snap(frame)
            case "delta":
                self._delta(frame)
            case other:
                raise AssertionError(f"unknown op {other}")

    def _message(self, frame: Json) -> None:
        article = Article(frame["sequence"], str(frame["html"]).strip())
        if not article.html:
            self.articles.pop(frame["id"], None)
            return
        self.articles[frame["id"]] = article
        if article.is_over and (body := self.bodies.pop(frame["id"], None)) is not None and body.ended:
            self.drawn.append((body.blocks, article.html))

    def _shift(self, frame: Json) -> None:
        for article in self.articles.values():
            if article.moves(frame):
                article.sequence += frame["by"]
                article.html = _SEQUENCE.sub(f'data-sequence="{article.sequence}"', article.html, count=1)
                article.html = _REVISION.sub(f'data-revision="{frame["revision"]}"', article.html, count=1)

    def _include(self, frame: Json) -> None:
        for article in self.articles.values():
            if article.changes(frame):
                article.include(frame)

    def _snap(self, frame: Json) -> None:
        if frame["id"] not in self.articles:
            return
        body = self.bodies.get(frame["id"])
        if frame["from"] > (len(body.blocks) if body else 0):
            self.bodies.pop(frame["id"], None)
            self.wants_sync = True
            return
        blocks = [*(body.blocks if body else [])[: frame["from"]], *frame["blocks"]]
        ended = bool(frame.get("end"))
        self.bodies[frame["id"]] = Body(frame["n"], frame["rev"], blocks, frame["tail"], ended)

    def _delta(self, frame: Json) -> None:
        if frame["id"] not in self.articles:
            return
        body = self.bodies.get(frame["id"])
        if body is None or frame["n"] > body.n + 1:
            self.wants_sync = True
        elif frame["n"] == body.n + 1:
            _extend(body, frame)

    def _short(self, frame: list[Any]) -> None:
        end, n, stays, replaced, text, *more = frame
        known = [id for id in self.bodies if id.endswith(end)] or [id for id in self.articles if id.endswith(end)]
        if not known:
            return
        [id] = known
        delta: Json = {"id": id, "n": n}
        if (body := self.bodies.get(id)) is not None and n == body.n + 1:
            delta |= expanded(body.tail, stays, replaced, text, *more)
        self._delta(delta)

    def text_of(self, message_id: str) -> str:
        """Return the HTML of a streaming text."""
        body = self.bodies[message_id]
        return "".join(body.blocks) + body.tail


def _extend(body: Body, frame: Json) -> None:
    body.n = frame["n"]
    body.blocks.extend(frame.get("blocks", []))
    for index, html in frame.get("replace", []):
        body.blocks[index] = html
        body.rev += 1
    body.tail = _units(body.tail, frame.get("keep", 0)) + frame.get("tail", "")
    body.ended = bool(frame.get("end"))


def expanded(
    tail: str,
    stays: int,
    replaced: int,
    text: str,
    blocks: Sequence[Any] = (),
    replace: Sequence[Any] = (),
    end: int = 0,
) -> Json:
    """Return the content of a short frame as a long frame, for a text whose tail is `tail`."""
    keep = len(tail.encode("utf-16-le", "surrogatepass")) // 2 - stays - replaced
    whole = [html if isinstance(html, str) else _spliced(tail, *html) for html in blocks]
    return {"blocks": whole, "replace": replace, "tail": _spliced(tail, keep, stays, text), "end": end}


def _spliced(text: str, start: int, end: int, between: str) -> str:
    """Return the first `start` and the last `end` UTF-16 units of a text, with another text between them."""
    units = text.encode("utf-16-le", "surrogatepass")
    rest = units[len(units) - end * 2 :].decode("utf-16-le", "surrogatepass")
    return _units(text, start) + between + rest


def _units(text: str, count: int) -> str:
    """Return the first `count` UTF-16 units of a text, as JavaScript's slice does."""
    return text.encode("utf-16-le", "surrogatepass")[: count * 2].decode("utf-16-le", "surrogatepass")
