"""The finished blocks of a growing text, and the link definitions that they share."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markdown_it.token import Token

from chat.rendering.budget import Allowance, Expansions, Meter, TooDear, most_output
from chat.rendering.markdown import parser
from chat.rendering.markdown.blocks import draw_block
from chat.rendering.markdown.highlight import Coloured, Colours
from chat.rendering.markdown.parser import Drawing
from chat.rendering.markdown.source import plain


@dataclass(frozen=True)
class Append:
    """A block was finished: this is its HTML."""

    html: str


@dataclass(frozen=True)
class Replace:
    """A finished block is drawn again, since a link that it uses was defined after it, or its code has got colours."""

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


class _Block(NamedTuple):
    """A block that can be drawn. `coloured`: how much code of the text got colours before it."""

    tokens: Sequence[Token]
    lines: Sequence[str]
    coloured: Coloured


class _Drawn(NamedTuple):
    """A block's HTML, the labels that it asked for in vain, and whether it must be drawn again elsewhere."""

    html: str
    missed: frozenset[str] = frozenset()
    is_provisional: bool = False


class Frozen:
    """Blocks for good, unless a later definition makes a link of what they hold in brackets.

    `provisional` has the source of blocks that cost too much here, by index. They are shown as source, or without the
    colours of their code, until they are drawn elsewhere, each alone.
    """

    def __init__(self, meter: Meter, allowance: Allowance) -> None:
        self.html: list[str] = []
        self.references = References()
        self.provisional: dict[int, str] = {}
        self._meter = meter
        self._allowance = allowance
        self._expansions = Expansions(strict=True)
        self._coloured = Coloured()
        self._length = self._output = 0
        self._waiting: defaultdict[str, set[int]] = defaultdict(set)
        self._sources: dict[int, _Block] = {}
        self._saw_no_definitions = False

    @property
    def is_exact(self) -> bool:
        """Whether the blocks are those that drawing all of the source at once gives."""
        return not self.provisional and not (self._saw_no_definitions and self.references)

    def add(self, slices: Sequence[str]) -> tuple[list[Op], Sequence[str]]:
        """Freeze source, each slice one top-level block and the definitions before it.

        Returns what changed, and the slices that are left because there were too many.
        """
        first, replaced, rest = len(self.html), set[int](), slices[:0]
        for number, source in enumerate(slices):
            try:
                if number:  # the first one is shown as source if the time is up
                    self._meter.check()
                replaced |= self._freeze(source)
            except TooDear:
                rest = slices[number:]
                break
        ops: list[Op] = [Append(html) for html in self.html[first:]]
        return ops + [Replace(index, self.html[index]) for index in sorted(replaced) if index < first], rest

    def append(self, blocks: Sequence[str]) -> list[Op]:
        """Add blocks that are drawn already."""
        self.html += blocks
        return [Append(html) for html in blocks]

    def complete(self, index: int, html: str) -> Op:
        """Put what was drawn elsewhere in the place of a provisional block."""
        self._saw_no_definitions |= _may_have_links(self.provisional.pop(index))
        self._output += len(html) - len(self.html[index])
        self.html[index] = html
        return Replace(index, html)

    def _freeze(self, source: str) -> set[int]:
        """Freeze a slice; returns which earlier blocks were drawn again. Raises TooDear: then no block has changed."""
        fresh = [(block, self._draw_first(block) if block else _Drawn(plain(source))) for block in self._parse(source)]
        stale = {index: self._draw(self._sources[index]) for index in self._stale()}
        self._length += len(source)
        self._output += sum(len(drawn.html) for _block, drawn in fresh)
        self._output += sum(len(drawn.html) - len(self.html[index]) for index, drawn in stale.items())
        if self._output > most_output(self._length):
            raise TooDear
        for block, drawn in fresh:
            if drawn.is_provisional:
                self.provisional[len(self.html)] = source
            self._keep(len(self.html), drawn, block)
        for index, drawn in stale.items():
            self._keep(index, drawn, self._sources[index])
        return set(stale)

    def _parse(self, source: str) -> Iterator[_Block | None]:
        """Parse a slice, block by block; None stands for one that cannot be parsed."""
        try:
            tokens = parser.parse(source, self.references, self._meter)
        except Exception:  # markdown-it can fail on odd input in many ways; the text must still be seen
            yield None
            return
        lines = source.split("\n")
        for block in parser.top_level(tokens):
            yield _Block(block, lines, self._coloured)

    def _draw_first(self, block: _Block) -> _Drawn:
        self._coloured = parser.coloured_after(block.tokens, block.coloured)
        try:
            return self._draw(block)
        except TooDear:
            return _Drawn(plain("\n".join(block.lines)), is_provisional=True)

    def _draw(self, block: _Block) -> _Drawn:
        self.references.missed.clear()
        colours = Colours(self._allowance, block.coloured)
        drawing = Drawing(self.references, final=True, meter=self._meter, expansions=self._expansions, colours=colours)
        html = draw_block(block.tokens, block.lines, drawing)
        return _Drawn(html, frozenset(self.references.missed), colours.missing)

    def _keep(self, index: int, drawn: _Drawn, block: _Block | None) -> None:
        self.html[index : index + 1] = [drawn.html]
        for label in drawn.missed:
            self._waiting[label].add(index)
        if drawn.missed and block is not None:
            self._sources[index] = block
        else:
            self._sources.pop(index, None)  # nothing can change it any more

    def _stale(self) -> list[int]:
        """The blocks that asked for what is defined now."""
        asked = {index for label in self.references.added for index in self._waiting.pop(label, ())}
        self.references.added.clear()
        return sorted(asked & self._sources.keys())  # others have found all their labels since


def _may_have_links(source: str) -> bool:
    """Whether a definition could change a block; code at the left edge has none."""
    return "[" in source and not source.lstrip("\n").startswith(("```", "~~~"))
