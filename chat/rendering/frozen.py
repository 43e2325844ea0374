"""The finished blocks of a growing text, and the link definitions that they share."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it.token import Token

from chat.rendering import engine
from chat.rendering.engine import Drawing
from chat.rendering.markdown import draw_block, plain


@dataclass(frozen=True)
class Append:
    """A block was finished: this is its HTML."""

    html: str


@dataclass(frozen=True)
class Replace:
    """A finished block reads otherwise, since a link that it uses was defined after it."""

    index: int
    html: str


Op = Append | Replace


class References(dict[str, Any]):
    """Link definitions that note which labels were asked for in vain, and which are new."""

    def __init__(self) -> None:
        super().__init__()
        self.missed: set[str] = set()
        self.added: list[str] = []

    def get(self, label: str, default: Any = None) -> Any:
        """Look a label up, as the parser does for every pair of brackets."""
        if label not in self:
            self.missed.add(label)
        return super().get(label, default)

    def __setitem__(self, label: str, definition: Any) -> None:
        self.added.append(label)
        super().__setitem__(label, definition)


class Frozen:
    """Blocks for good, unless a later definition makes a link of what they hold in brackets."""

    def __init__(self) -> None:
        self.html: list[str] = []
        self.references = References()
        self._waiting: defaultdict[str, set[int]] = defaultdict(set)
        self._sources: dict[int, tuple[Sequence[Token], Sequence[str]]] = {}

    def add(self, slices: Iterable[str]) -> list[Op]:
        """Freeze source, each slice one top-level block and the definitions before it."""
        first = len(self.html)
        for source in slices:
            self._freeze(source)
        stale = self._redraw_waiting()
        ops: list[Op] = [Append(html) for html in self.html[first:]]
        return ops + [Replace(index, self.html[index]) for index in stale if index < first]

    def _freeze(self, source: str) -> None:
        try:
            tokens = engine.parse(source, self.references)
        except Exception:  # markdown-it can fail on odd input in many ways; the text must still be seen
            self.html.append(plain(source))
            return
        lines = source.split("\n")
        for block in engine.top_level(tokens):
            self._sources[len(self.html)] = block, lines
            self.html.append(self._draw(len(self.html)))

    def _draw(self, index: int) -> str:
        self.references.missed.clear()
        html = draw_block(*self._sources[index], Drawing(self.references, final=True))
        for label in self.references.missed:
            self._waiting[label].add(index)
        if not self.references.missed:
            del self._sources[index]  # nothing can change it any more
        return html

    def _redraw_waiting(self) -> list[int]:
        asked = {index for label in self.references.added for index in self._waiting.pop(label, ())}
        self.references.added.clear()
        stale = asked & self._sources.keys()  # a block that has since found all its labels needs no other drawing
        for index in stale:
            self.html[index] = self._draw(index)
        return sorted(stale)
