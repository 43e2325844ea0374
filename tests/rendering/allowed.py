"""The HTML that rendered text may contain, checked with an independent parser."""

import re
from html.parser import HTMLParser

from pygments.token import STANDARD_TYPES

_TAGS = {"p", "hr", "br", "h1", "h2", "h3", "h4", "h5", "h6", "em", "s", "strong", "blockquote", "ul", "ol", "li"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "pre", "code", "div", "span", "a", "bdi", "button", "input"}
_TAGS |= {"math", "mi", "mn", "mo", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup"}
_TAGS |= {"munder", "mover", "munderover", "mmultiscripts", "mprescripts", "mphantom", "mstyle", "mtable", "mtr", "mtd"}
_TAGS |= {"sub", "sup"}
_CLASSES = {
    "block",
    "code",
    "cite",
    "code-head",
    "code-lang",
    "copy",
    "wrap",
    "csv",
    "download",
    "preview",
    "show",
    "table",
    "footnote",
    "footnote-back",
    "footnote-ref",
    "footnote-text",
    "load",
    "hl",
    "table-wrap",
    "task",
    "plain",
    "formula",
    "tex",
    "ext-img",
    "left",
    "center",
    "boxed",
    "struck-down",
    "struck-out",
    "struck-twice",
    "struck-up",
}
_CELLS = {"left", "right", "line-above", "line-after", "line-before", "line-below"}
_ALERTS = {"note", "tip", "important", "warning", "caution"}
_CLASSES |= {f"alert alert-{kind}" for kind in _ALERTS}
_CLASSES |= {"right", *STANDARD_TYPES.values()}
_VALUES = {
    ("a", "target"): {"_blank"},
    ("a", "rel"): {"noopener noreferrer nofollow"},
    ("button", "type"): {"button"},
    ("button", "data-action"): {
        *("copy-code", "copy-csv", "download-code", "footnote", "footnote-back", "load-picture", "preview"),
        *("show-code", "show-diagram", "wrap-code"),
    },
    ("button", "aria-labelledby"): {
        *("w-code", "w-copy", "w-csv", "w-diagram", "w-download", "w-preview", "w-wrap"),
    },
    ("button", "aria-describedby"): {"w-footnote", "w-footnote-back"},
    ("div", "aria-labelledby"): {"w-formula", "w-table", *(f"w-{kind}" for kind in _ALERTS)},
    ("code", "dir"): {"ltr"},
    ("div", "dir"): {"auto", "ltr", "rtl"},
    ("div", "role"): {"group"},
    ("div", "tabindex"): {"0"},
    ("pre", "tabindex"): {"0"},
    ("input", "type"): {"checkbox"},
    ("input", "disabled"): {""},
    ("input", "checked"): {""},
    ("input", "aria-labelledby"): {"w-task"},
}
_FLAG = re.compile("true|false")
_MATH = {
    **dict.fromkeys(("stretchy", "fence", "separator", "accent", "accentunder", "movablelimits", "largeop"), _FLAG),
    **dict.fromkeys(("symmetric", "displaystyle"), _FLAG),
    **dict.fromkeys(("minsize", "maxsize", "width"), re.compile(r"-?0?[.]\d+em|[0-3]([.]\d+)?em|0")),
    "display": re.compile("block|inline"),
    "alttext": re.compile(".*", re.DOTALL),
    "form": re.compile("prefix|infix|postfix"),
    "linethickness": re.compile("0"),
    "mathcolor": re.compile("[a-z]+|#[0-9a-fA-F]+"),
    "mathvariant": re.compile("normal"),
    "scriptlevel": re.compile("[0-3]"),
}
_VOID = {"hr", "br", "input"}


class Checker(HTMLParser):
    """Fail on any tag, attribute, class or address that is not allowed, and on elements that do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attrs:
            self._check(tag, name, value or "")
        if tag not in _VOID:
            self.open.append(tag)

    def _check(self, tag: str, name: str, value: str) -> None:
        if (tag, name) == ("a", "href"):
            assert re.match(r"(https?://|mailto:)[!-~]*\Z", value, re.IGNORECASE), value
        elif (tag, name) == ("mtd", "class"):
            assert {*value.split(" ")} <= _CELLS, value
        elif name == "class":
            assert value in _CLASSES, value
        elif (tag, name) == ("div", "data-file"):
            assert re.fullmatch(r"[a-z0-9]{1,8}", value), value
        elif (tag, name) == ("ol", "start"):
            assert value.isdecimal(), value
        elif name == "data-picture":
            assert re.fullmatch(r"[\w-]{43}", value), value
        elif tag.startswith("m"):
            assert _MATH[name].fullmatch(value), (tag, name, value)
        elif (tag, name) != ("a", "title"):
            assert value in _VALUES[tag, name], (tag, name, value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def check(html: str) -> str:
    """Fail unless all of the HTML is allowed; return its text."""
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    html.encode()  # raises if the text cannot be encoded for a browser
    return checker.text
