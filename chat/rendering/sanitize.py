"""The allow-list that rendered Markdown passes last: our own tags, classes and link schemes, nothing else."""

import nh3

from chat.rendering.highlight import CODE_CLASSES

_BLOCKS = {"p", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "input"}
_TABLE = {"table", "thead", "tbody", "tr"}
_INLINE = {"br", "em", "s", "strong"}
_ALIGNED = {"left", "center", "right"}
_CLASSES = {
    "a": {"ext-img"},
    "button": {"copy"},
    "code": {"hl"},
    "div": {"code", "code-head", "table-wrap"},
    "li": {"task"},
    "pre": {"plain"},
    "span": {"code-lang", "ext-img", *CODE_CLASSES},
    "td": _ALIGNED,
    "th": _ALIGNED,
}
_VALUES = {
    "button": {"type": {"button"}, "data-action": {"copy-code"}},
    "input": {"type": {"checkbox"}, "disabled": {""}, "checked": {""}},
}

_cleaner = nh3.Cleaner(
    tags={*_BLOCKS, *_TABLE, *_INLINE, *_CLASSES},
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    tag_attribute_values=_VALUES,
    allowed_classes=_CLASSES,
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
)


def clean(html: str) -> str:
    """Return the HTML with everything dropped that is not on the allow-list."""
    return _cleaner.clean(html)


def escape(text: str) -> str:
    """Write plain text exactly as `clean` writes the text inside an element."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\xa0", "&nbsp;")
