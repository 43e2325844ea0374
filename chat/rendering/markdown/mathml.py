"""Convert formulas from LaTeX to MathML that has only allowed elements."""

import re
from functools import lru_cache
from html import escape, unescape
from xml.etree.ElementTree import Element

from latex2mathml.converter import Converter

MAX_SOURCE = 4_000
MAX_DEPTH = 50

# A formula must not define commands, because ten lines of definitions can expand to a billion characters.
_REFUSED = re.compile(r"\\(?:re|provide)?newcommand|\\[egx]?def\b|\\let\b|\\newenvironment|\\DeclareMathOperator")
# Environments that the library does not know are replaced by arrays.
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(aligned|align|alignedat|split|gathered|gather|equation|multline)\*?\}")
_COLUMNS = {"gathered": "c", "gather": "c", "multline": "c"}
_UNDER = frozenset({"lim", "max", "min", "sup", "inf", "arg max", "arg min", "lim sup", "lim inf", "argmax", "argmin"})

_FLAG = re.compile("true|false")
_SPACE = re.compile(r"-?0?\.\d{1,4}em|[0-3](?:\.\d{1,4})?em|0")
_SIZE = re.compile(r"[0-3](?:\.\d{1,4})?em")
_COLOR = re.compile("[a-z]{3,20}|#[0-9a-fA-F]{3,6}")
# The values allowed for each attribute of each tag. No links, styles, backgrounds or heights.
ALLOWED: dict[str, dict[str, re.Pattern[str]]] = {
    "math": {"display": re.compile("block|inline")},
    "mi": {"mathvariant": re.compile("normal")},
    "mn": {},
    "mo": dict.fromkeys(("stretchy", "fence", "separator", "accent", "movablelimits", "largeop", "symmetric"), _FLAG)
    | {"form": re.compile("prefix|infix|postfix"), "minsize": _SIZE, "maxsize": _SIZE},
    "mtext": {},
    "mspace": {"width": _SPACE},
    "mrow": {},
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
    "mtd": {"class": re.compile("left|right")},
}
_CHILDREN = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}
_SCRIPTS = frozenset({"msub", "msup", "msubsup"})
_AS_ROW = frozenset({"menclose", "mpadded"})


@lru_cache(maxsize=4_000)  # the tail of a stream is drawn many times
def mathml(source: str, *, display: bool) -> str | None:
    """Return the formula as MathML, or None if it must be shown as source."""
    if len(source) > MAX_SOURCE or _REFUSED.search(source):
        return None
    try:
        tree = Converter(display="block" if display else "inline").convert_to_element(_replace_environments(source))
        return _write(tree, display, 0)
    except Exception:  # the library fails on invalid LaTeX in many ways
        return None


def _replace_environments(source: str) -> str:
    def replace(match: re.Match[str]) -> str:
        which, name = match.groups()
        if name == "equation":
            return ""
        columns = _COLUMNS.get(name, "rl" * 4)
        return r"\end{array}" if which == "end" else rf"\begin{{array}}{{{columns}}}"

    return _ENVIRONMENT.sub(replace, source)


def _write(element: Element, display: bool, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise ValueError("the formula nests too deeply")
    tag = _tag(element, display)
    inside = _joined(tag, [_write(child, display, depth + 1) for child in element])
    # The library writes characters as references, and these could be markup.
    text = escape(unescape(element.text or ""), quote=False).replace("\xa0", "&nbsp;")
    return f"<{tag}{_attributes(tag, element)}>{text}{inside}</{tag}>"


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
    if tag not in ALLOWED:
        raise ValueError(f"{tag} is not allowed")
    return tag


def _attributes(tag: str, element: Element) -> str:
    given = {**element.attrib, "class": element.attrib.get("columnalign", "")}
    if tag == "mtable" and (cell := element.find("mtr/mtd")) is not None and cell.get("columnalign") == "right":
        given["displaystyle"] = "true"  # aligned equations, each in full size
    return "".join(
        f' {name}="{given[name]}"'
        for name, pattern in ALLOWED[tag].items()
        if name in given and pattern.fullmatch(given[name])
    )
