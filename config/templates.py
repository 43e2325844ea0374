"""A template loader that removes the line breaks of indentation.

As text nodes, the line breaks of an indented template would make a page larger and slower, and add spaces between
inline elements. Line breaks between tags are removed, as in JSX. Between words, they become one space, as in all HTML.
If two tags need a space between them, write `{{ " " }}` in the template.
"""

from __future__ import annotations

import re

from django.template import Origin
from django.template.loaders import filesystem

_ATTRIBUTES = r'(?>\{%.*?%\}|\{\{.*?\}\}|"(?>\{%.*?%\}|\{\{.*?\}\}|[^"])*"|[^>"])*>'
_PIECES = re.compile(
    rf"""(?P<literal>\{{%\s*(?P<message>blocktrans\w*|comment|verbatim)\b.*?\{{%\s*end(?P=message)\s*%\}}|\{{\#.*?\#\}})
    |(?P<space>\{{\{{\ "\ "\ \}}\}})
    |(?P<raw><(?P<raw_name>pre|script|style|textarea)\b{_ATTRIBUTES})(?P<content>.*?)(?=</(?P=raw_name))
    |(?P<element><[/!]?(?P<name>[a-z][\w-]*)\b{_ATTRIBUTES})
    |(?P<command>\{{%\s*(?P<command_name>\w+).*?%\}})
    |(?P<break>\s*\n\s*)
    |(?P<text>\{{\{{.*?\}}\}}|[^\s<{{]+|[^\S\n]+(?!\n)|.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# White space at the edges of these elements is not shown.
_BLOCKS = frozenset(
    """article aside base blockquote body button caption col colgroup dd details dialog div dl doctype dt fieldset
    figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li link main menu meta nav noscript
    ol optgroup option p pre script section select style summary table tbody td template textarea tfoot th thead
    title tr ul""".split()  # noqa: SIM905  # as a list they would take sixty lines
)
_BLOCK_COMMANDS = frozenset({"block", "endblock", "extends", "load"})


class FileSystemLoader(filesystem.Loader):
    """A loader of templates from the project's folder."""

    def get_contents(self, origin: Origin) -> str:
        source = super().get_contents(origin)
        return condense(source) if origin.name.endswith(".html") else source


def condense(source: str) -> str:
    """Return a template's source without line breaks beside tags.

    Other line breaks, also those between the attributes of a tag, become one space. The contents of `pre`, `textarea`,
    `script`, `style` and of translated blocks are not changed.
    """
    written = []
    before, breaks = "block", False
    for piece in _PIECES.finditer(source):
        if piece["break"]:
            breaks = True
            continue
        kind = _kind(piece)
        if breaks and "block" not in (before, kind) and "text" in (before, kind):
            written.append(" ")
        written.append(_squeezed(piece))
        before, breaks = kind, False
    return "".join(written)


def _kind(piece: re.Match[str]) -> str:
    """Return "block" for a piece next to which browsers show no space, "tag" for another tag, or "text"."""
    if piece["space"]:
        return "block"
    name = (piece["raw_name"] or piece["name"] or piece["command_name"] or piece["message"] or "").lower()
    if name in (_BLOCK_COMMANDS if piece["command"] else _BLOCKS):
        return "block"
    return "tag" if name else "text"


def _squeezed(piece: re.Match[str]) -> str:
    """Return a piece of the source with its attributes on one line."""
    tag = piece["raw"] or piece["element"]
    if tag is None:
        return piece[0]
    return re.sub(r" (?=/?>$)", "", re.sub(r"\s*\n\s*", " ", tag)) + (piece["content"] or "")
