"""Convert formulas from LaTeX to MathML that has only allowed elements.

The library does not fail at LaTeX that it does not know. It writes it as text, or as attributes that browsers ignore,
which would be a wrong formula. Such a formula is shown as source.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from html import escape, unescape
from types import MappingProxyType
from xml.etree.ElementTree import Element

from latex2mathml.converter import Converter
from latex2mathml.symbols_parser import convert_symbol

from chat.rendering.markdown import latex

MAX_SOURCE = 4_000
MAX_DEPTH = 50

# A formula must not define commands, because ten lines of definitions can expand to a billion characters. However a
# definition is written, the library stores it here, and fails.
_NO_DEFINITIONS: Mapping[str, tuple[list[str], int]] = MappingProxyType({})
# The library converts the operator of this command twice, so that nested ones take exponential time. The length counts
# as often as they could convert it.
_CONVERTED_TWICE = r"\sideset"
# An escaped character in a text, as the library writes it.
_ESCAPED = re.compile(r"\\(&#x000A0;|[%$_&#{}])")
_UNDER = frozenset({"lim", "max", "min", "sup", "inf", "arg max", "arg min", "lim sup", "lim inf", "argmax", "argmin"})

_FLAG = re.compile("true|false")
_SPACE = re.compile(r"-?0?\.\d{1,4}em|[0-3](?:\.\d{1,4})?em|0")
_SIZE = re.compile(r"[0-3](?:\.\d{1,4})?em")
_COLOR = re.compile("[a-z]{3,20}|#[0-9a-fA-F]{3,6}")
# The values allowed for each attribute of each tag. No links, styles, backgrounds or heights.
ALLOWED: dict[str, dict[str, re.Pattern[str]]] = {
    "math": {"display": re.compile("block|inline"), "alttext": re.compile(".*", re.DOTALL)},
    "mi": {"mathvariant": re.compile("normal")},
    "mn": {},
    "mo": dict.fromkeys(("stretchy", "fence", "separator", "accent", "movablelimits", "largeop", "symmetric"), _FLAG)
    | {"form": re.compile("prefix|infix|postfix"), "minsize": _SIZE, "maxsize": _SIZE},
    "mtext": {},
    "mspace": {"width": _SPACE},
    "mrow": {"class": re.compile("boxed|struck-(?:up|down|out|twice)")},
    "mfrac": {"linethickness": re.compile("0")},
    "msqrt": {},
    "mroot": {},
    "msub": {},
    "msup": {},
    "msubsup": {},
    "munder": {"accentunder": _FLAG},
    "mover": {"accent": _FLAG},
    "munderover": {},
    "mmultiscripts": {},
    "mprescripts": {},
    "mphantom": {},
    "mstyle": {"displaystyle": _FLAG, "scriptlevel": re.compile("[0-3]"), "mathcolor": _COLOR},
    "mtable": {"displaystyle": _FLAG},
    "mtr": {},
    "mtd": {"class": re.compile("(?:(?:left|right|line-(?:above|below|before|after))(?: (?!$)|$))+")},
}
_CHILDREN = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
_SCRIPTS = frozenset({"msub", "msup", "msubsup"})
_AS_ROW = frozenset({"menclose", "mpadded"})
# The classes of what browsers do not draw: frames and strokes.
_NOTATIONS = {
    "box": "boxed",
    "updiagonalstrike": "struck-up",
    "downdiagonalstrike": "struck-down",
    "updiagonalstrike downdiagonalstrike": "struck-twice",
    "horizontalstrike": "struck-out",
}
# The names of styles in Unicode, by the library's name. Without "italic", because browsers draw single letters so.
_STYLES = {
    **{name: name.upper() for name in ("bold", "double-struck", "script", "fraktur", "sans-serif", "monospace")},
    "bold-italic": "BOLD ITALIC",
    "sans-serif-italic": "SANS-SERIF ITALIC",
}
_NOT_IN_STYLED = re.compile(r"\b(?:LATIN|GREEK|LETTER|LUNATE) ")
# Attributes that browsers ignore, although the formula would look wrong without them.
_NOT_DRAWN = frozenset({"columnlines", "linebreak", "rowlines"})


@lru_cache(maxsize=4_000)  # the tail of a stream is drawn many times
def mathml(source: str, *, display: bool) -> str | None:
    """Return the formula as MathML, or None if it must be shown as source."""
    if len(source) > MAX_SOURCE:
        return None
    try:
        tree = _convert(latex.prepare(source), display)
        tree.set("alttext", source)  # for copies as text
        for table in tree.iter("mtable"):
            _add_lines(table)
        return _write(tree, display, 0)
    except Exception:  # the library fails on invalid LaTeX in many ways
        return None


def _convert(prepared: str, display: bool) -> Element:
    count = prepared.count(_CONVERTED_TWICE)
    if count and len(prepared) * 2**count > 2 * MAX_SOURCE:
        raise ValueError("the formula may take exponential time")
    converter = Converter(display="block" if display else "inline")
    converter.macros = _NO_DEFINITIONS  # type: ignore[assignment]  # read-only
    return converter.convert_to_element(prepared)


def _add_lines(table: Element) -> None:
    """Replace the characters for lines by attributes of the cells next to the lines."""
    rows = table.findall("mtr")
    marks = [_take_marks(row) for row in rows]
    if len(rows) > 1 and marks[-1] and len(rows[-1]) == 1 and not len(rows[-1][0]):  # the line below the last row
        table.remove(rows.pop())
        _mark(list(rows[-1]), "line-below")
    columns = latex.column_lines(marks[0])
    for row, mark in zip(rows, marks, strict=False):
        if latex.ROW_LINE in mark:
            _mark(list(row), "line-above")
        within = bisect_left(columns, len(row))
        _mark([row[column] for column in columns[:within]], "line-before")
        if within < len(columns):  # once, because a row may be much shorter than the list of columns
            _mark([row[-1]], "line-after")


def _take_marks(row: Element) -> str:
    marks, cell = "", row[0]
    while len(cell) and cell[0].tag == "mi" and latex.LINES.fullmatch(cell[0].text or ""):
        marks += cell[0].text or ""
        cell.remove(cell[0])
    return marks


def _mark(cells: list[Element], name: str) -> None:
    for cell in cells:
        cell.set("lines", f"{cell.get('lines', '')} {name}")


def _write(element: Element, display: bool, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise ValueError("the formula nests too deeply")
    tag = _tag(element, display)
    inside = _joined(tag, [_write(child, display, depth + 1) for child in element])
    # The library writes characters as references, and these could be markup.
    text = escape(_in_style(unescape(_text(element)), element), quote=False).replace("\xa0", "&nbsp;")
    return f"<{tag}{_attributes(tag, element)}>{text}{inside}</{tag}>"


def _text(element: Element) -> str:
    """Return the text of an element. Raise ValueError if the library did not know what it is."""
    text = element.text or ""
    if element.tag == "mtext":
        is_known = "$" not in _ESCAPED.sub("", text)  # the library does not convert formulas in texts
        text = _ESCAPED.sub(r"\1", text)
    else:
        symbol = convert_symbol(text) if element.tag == "mo" else None  # of a delimiter after \big
        text = f"&#x{symbol};" if symbol else text
        # Without text and attributes, it is the name \operatorname of an operator that was not found.
        is_known = text not in ("&", "{", "}") and not (element.tag == "mo" and _is_empty(element))
    if not is_known or "\\" in text or latex.LINES.search(text):
        raise ValueError(f"{text or element.tag} is not known")
    return text


def _in_style(text: str, element: Element) -> str:
    """Return the text in the letters of its style, because browsers ignore all values of mathvariant but one."""
    style = _STYLES.get(element.get("mathvariant", ""))
    return "".join(_styled(letter, style) for letter in text) if style else text


@lru_cache(maxsize=1_000)
def _styled(letter: str, style: str) -> str:
    """Return a letter or digit in a style such as "BOLD". Return it unchanged if Unicode has no such letter."""
    name = _NOT_IN_STYLED.sub("", unicodedata.name(letter, ""))
    for prefix in (f"MATHEMATICAL {style}", style.replace("FRAKTUR", "BLACK-LETTER")):  # some are older than the rest
        try:
            return unicodedata.lookup(f"{prefix} {name}")
        except KeyError:
            pass
    return letter


def _is_empty(element: Element) -> bool:
    return not (element.text or len(element) or element.attrib)


def _joined(tag: str, children: list[str]) -> str:
    """Join the children of a tag.

    Group the first ones if there are too many, because a base may be several elements.
    """
    count = _CHILDREN.get(tag, len(children))
    if len(children) < count or (len(children) > count and tag not in _SCRIPTS):
        raise ValueError(f"{tag} has the wrong number of children")
    if len(children) > count:
        children[: 1 - count] = ["<mrow>" + "".join(children[: 1 - count]) + "</mrow>"]
    return "".join(children)


def _tag(element: Element, display: bool) -> str:
    if display and element.tag == "msub" and " ".join(unescape(element[0].text or "").split()) in _UNDER:
        return "munder"
    tag = "mrow" if element.tag in _AS_ROW else element.tag
    if tag not in ALLOWED or not _NOT_DRAWN.isdisjoint(element.attrib):
        raise ValueError(f"{tag} is not allowed")
    return tag


def _attributes(tag: str, element: Element) -> str:
    classes = [element.get("columnalign", "").replace("center", ""), element.get("lines", "").strip()]
    given = {**element.attrib, "class": " ".join(filter(None, classes))}
    if element.tag == "menclose":
        given["class"] = _NOTATIONS[element.attrib["notation"]]
    if tag == "mtable" and (cell := element.find("mtr/mtd")) is not None and cell.get("columnalign") == "right":
        given["displaystyle"] = "true"  # aligned equations, each in full size
    return "".join(
        f' {name}="{escape(given[name])}"'
        for name, pattern in ALLOWED[tag].items()
        if name in given and pattern.fullmatch(given[name])
    )
