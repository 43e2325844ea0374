"""The allow-list for rendered Markdown. It has only Parley's own tags, classes and link schemes."""

import nh3

from chat.rendering.markdown.code_blocks import EXTENSIONS
from chat.rendering.markdown.highlight import CODE_CLASSES
from chat.rendering.markdown.mathml import ALLOWED as MATH

_BLOCKS = {"p", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "input"}
_TABLE = {"table", "thead", "tbody", "tr"}
_INLINE = {"a", "bdi", "br", "em", "s", "strong", "sub", "sup"}
_ALIGNED = {"left", "center", "right"}
_ALERTS = {"note", "tip", "important", "warning", "caution"}
_CLASSES = {
    "button": {"copy", "csv", "download", "footnote-back", "footnote-ref", "load", "preview", "show", "wrap"},
    "code": {"hl", "tex"},
    "div": {
        *("alert", *(f"alert-{kind}" for kind in _ALERTS)),
        *("code", "code-head", "footnote", "footnote-text", "formula", "table", "table-wrap"),
    },
    "li": {"task"},
    "pre": {"plain"},
    "span": {"cite", "code-lang", "ext-img", *CODE_CLASSES},
    "mrow": {"boxed", "struck-down", "struck-out", "struck-twice", "struck-up"},
    "mtd": {"left", "right", "line-above", "line-after", "line-before", "line-below"},
    "td": _ALIGNED,
    "th": _ALIGNED,
}
_VALUES = {
    "button": {
        "type": {"button"},
        "data-action": {
            *("copy-code", "copy-csv", "download-code", "footnote", "footnote-back", "load-picture", "preview"),
            *("show-code", "show-diagram", "wrap-code"),
        },
        "aria-labelledby": {"w-code", "w-copy", "w-csv", "w-diagram", "w-download", "w-preview", "w-wrap"},
        "aria-describedby": {"w-footnote", "w-footnote-back"},
    },
    "div": {
        "tabindex": {"0"},
        "role": {"group"},
        "aria-labelledby": {"w-formula", "w-table", *(f"w-{kind}" for kind in _ALERTS)},
        "data-file": set(EXTENSIONS),
    },
    "code": {"dir": {"ltr"}},
    "pre": {"tabindex": {"0"}},
    "input": {"type": {"checkbox"}, "disabled": {""}, "checked": {""}, "aria-labelledby": {"w-task"}},
}
# `mathml.py` checks the values.
_MATH_ATTRIBUTES = {tag: {*names} - {"class"} for tag, names in MATH.items()}

_cleaner = nh3.Cleaner(
    tags={*_BLOCKS, *_TABLE, *_INLINE, *_CLASSES, *MATH},
    attributes={"a": {"href", "title"}, "button": {"data-picture"}, "ol": {"start"}, **_MATH_ATTRIBUTES},
    tag_attribute_values=_VALUES,
    allowed_classes=_CLASSES,
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


def clean(html: str) -> str:
    """Return the HTML without anything that is not on the allow-list."""
    return _cleaner.clean(html)


def escape(text: str) -> str:
    """Escape plain text exactly as `clean` writes text inside an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", "&nbsp;")
