"""Families of texts of any length that are expensive in time, HTML or memory."""

from __future__ import annotations

from collections.abc import Callable

from chat.rendering.markdown.highlight import _LANGUAGES
from tests.rendering.documents import ANSWER

Family = Callable[[int], str]


def _again(unit: str) -> Family:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _numbered(unit: str) -> Family:
    """Return a family that repeats a unit with a new number each time, so that no cache helps."""
    return lambda size: "".join(unit.replace("@", str(number)) for number in range(size // len(unit)))[:size]


def _references(size: int) -> str:
    """Return one long definition and as many references to it as fit."""
    return f"[a]: http://x/{'y' * (size // 2)}\n\n" + "[a]" * (size // 6)


def _late_definitions(size: int) -> str:
    """Return labels in separate paragraphs, all of them defined at the end, one per line."""
    count = size // 40
    labels = "".join(f"[a{number}] x\n\n" for number in range(count))
    return labels + "".join(f"[a{number}]: http://x/y\n\n" for number in range(count))


def _late_notes(size: int) -> str:
    """Return references to footnotes in separate paragraphs, all of them defined at the end."""
    count = size // 40
    labels = "".join(f"[^a{number}] x\n\n" for number in range(count))
    return labels + "".join(f"[^a{number}]: some note\n" for number in range(count))


def _wide_table(size: int) -> str:
    """Return rows of one cell under a header of hundreds, whose missing cells the renderer adds."""
    columns = min(500, size // 10)
    return f"{'|a' * columns}|\n{'|-' * columns}|\n" + _again("|c\n")(size - 4 * columns)


def _ticks(size: int) -> str:
    """Return runs of backticks, one of each length, none of which closes another."""
    runs = (f"{'`' * length}a" for length in range(1, int((2 * size) ** 0.5)))
    return "".join(runs)[:size]


def _languages(size: int) -> str:
    """Return code in every language, for which each lexer must be loaded."""
    return _again("".join(f"```{name}\nx = 1 # y\n```\n" for name in sorted(_LANGUAGES)))(size)


FAMILIES: dict[str, Family] = {
    "answer": _again(ANSWER),
    "references": _references,
    "late definitions": _late_definitions,
    "late notes": _late_notes,
    "notes": _numbered("[^a@]: x\n"),
    "references to notes": lambda size: "[^a]: x\n\n" + _again("[^a]")(size - 9),
    "notes in notes": _again("[^a]: [^b]: [^c]: "),
    "alerts": _again("> [!NOTE]\n> x\n\n"),
    "alerts in alerts": _again("> [!NOTE]\n> > [!TIP]\n> > > [!NOTE]\n"),
    "diagrams": _again("```mermaid\nx\n```\n"),
    "definitions": _numbered("[a@]: x\n"),
    "addresses": _numbered("(http://a/x_@) www.a.b,"),
    "addresses in Chinese": _again("看https://a.b查www.c.d和"),
    "pictures": _again("![![!["),
    "citations": _again("[1, 2][1,2,3,4,5"),
    "stars": _again("*_*_"),
    "stars and brackets": _again("*[*["),
    "stars in Chinese": _again("文*“文***”~~"),
    "brackets": _again("["),
    "links": _numbered("[a@](http://x/@) "),
    "emphasis": _again("***a"),
    "quotes": _again("> > > > > > > > > > x\n"),
    "lists": lambda size: "".join(f"{'  ' * (line % 18)}- a\n" for line in range(size))[:size],
    "lists in a line": _again("- - - - - - - - - - x\n"),
    "tables": lambda size: ("|a|b|\n|-|-|\n" + "|c|d|\n" * size)[:size],
    "wide tables": _wide_table,
    "a long line": _again("x"),
    "ticks": _ticks,
    "entities": _again("&amp;&a"),
    "html": _again("<a x='"),
    "tags": _again("<sup>a<br <sub>b</sub>" + "<sub>" * 20 + "<br" + " " * 30),
    "headings": _again("# a\n"),
    "lines": _again("\n"),
    "code": _again("```python\n" + "def f(x): return [x, 'a', 1]\n" * 80 + "```\n"),
    "one code": lambda size: "```python\n" + _again("def f(x): return [x, 'a', 1]\n")(size - 15) + "\n```\n",
    "short code": _again("```py\nx\n```\n"),
    "languages": _languages,
    "slow code": _again("```csharp\n" + "a\n" * 1_200 + "```\n"),
    "formulas": _numbered("$x_{@}^a$ "),
    "formulas within text": _again("b $$\n$$\n"),
    "lines of arrays": _numbered("$$\n@\\begin{array}{" + "c|" * 300 + "}" + r"\\" * 300 + "\\end{array}\n$$\n\n"),
    "formula blocks": _again("$$\n" + "\\frac{a_1}{b^2}+" * 200 + "\n$$\n\n"),
}
