"""No text of a model or a stranger becomes any markup but our own, at any moment of a stream."""

import pytest
from hypothesis import given, settings

from chat.rendering.markdown import render
from chat.rendering.markdown.stream import MarkdownStream
from tests.rendering.allowed import check
from tests.rendering.documents import TRAPS, pieces
from tests.rendering.vectors import VECTORS

SCHEMES = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "java&Tab;script:alert(1)",
    "java&NewLine;script:alert(1)",
    "javascript&colon;alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A;&#x61;vascript&#58;alert(1)",
    "%6A%61vascript:alert(1)",
    "\\javascript:alert(1)",
    "javascript://https://a/%0aalert(1)",
    " javascript:alert(1)",
    "\u0001javascript:alert(1)",
    "\u00a0javascript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html;base64,PHNjcmlwdD4=",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "data:image/png;base64,AAAA",
    "file:///etc/passwd",
    "blob:https://a/b",
    "//evil.example",
    "/admin/delete",
    "?next=/",
    "#spoof",
    "x:y",
    "https:evil",
    'https://a" onmouseover="alert(1)',
    "https://a' onmouseover='alert(1)",
    "https://a<script>alert(1)</script>",
    "https://a&quot; onclick=&quot;alert(1)",
    "https://[::1",
    "https://\u202egpj.exe",
    "https://a\u2028b",
    "https://\ud800",
    'mailto:a@b?subject=" onclick=alert(1)',
)
HTML = (
    "<script>alert(1)</script>",
    "<ScRiPt/src=//evil></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext></p><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<style>*{display:none}</style>",
    "<form action=//evil><button class=stop>Stop</button>",
    "<div class='message' id='m_1' hx-get='//evil' x-data='alert(1)'>",
    "<button type=button class=copy data-action=cancel>Copy</button>",
    "<base href=//evil>",
    "<meta http-equiv=refresh content=0>",
    "<!-- --!><img src=x onerror=alert(1)> -->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?>",
    "<!DOCTYPE html>",
    "</div></div></article><script>alert(1)</script>",
    "</code></pre></div><img src=x onerror=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<\0script>alert(1)</\0script>",
    "\ufeff<script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</script>",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= 1 %>",
)
INFO = (
    'x" onload="alert(1)',
    "x' onload='alert(1)",
    'x"><script>alert(1)</script>',
    "&quot;onload=alert(1)",
    "message copy stop",
    'python"class="copy',
    "<img/src=x/onerror=alert(1)>",
    "a" * 5_000,
    "\u202e\u2028\u0000",
    "{.copy #m_1 onclick=alert(1)}",
    "../../x",
)


def _texts() -> list[str]:
    links = [
        form.format(url) for url in SCHEMES for form in ("[a]({})", "[a](<{}>)", "![a]({})", "<{}>", "[a]\n\n[a]: {}")
    ]
    titles = [f'[a](https://b "{html}")' for html in HTML] + [f"![{html}](https://b '{html}')" for html in HTML]
    blocks = [
        form.format(html)
        for html in HTML
        for form in ("{}", "a {} b", "> {}\n", "- {0}\n\n  {0}", "|{0}|\n|-|\n|{0}|", "# {}")
    ]
    code = [form.format(html) for html in HTML for form in ("```html\n{}\n```", "    {}", "`{}`", "```js\n{}")]
    infos = [f"{fence}{info}\n<b>&\n{fence}" for info in INFO for fence in ("```", "~~~")]
    return links + titles + blocks + code + infos


@pytest.mark.parametrize("text", _texts())
def test_hostile_text_yields_only_our_markup(text: str) -> None:
    """MSG-12: the HTML of the whole text and of every prefix contains only allowed elements."""
    check(render.render(text))
    stream = MarkdownStream()
    for character in text[:400]:
        stream.feed(character)
        check(stream.tail_html())
    stream.feed(text[400:])
    stream.finish()
    check("".join(stream.blocks))


@pytest.mark.parametrize("text", VECTORS)
def test_known_vector_yields_only_our_markup(text: str) -> None:
    """MSG-12: known attacks on other renderers give only allowed elements."""
    check(render.render(text))
    stream, step = MarkdownStream(), max(1, len(text) // 50)
    for start in range(0, len(text), step):
        stream.feed(text[start : start + step])
        check(stream.tail_html())
    stream.finish()
    check("".join(stream.blocks))


@pytest.mark.parametrize("text", TRAPS)
def test_special_markdown_yields_only_our_markup(text: str) -> None:
    """MSG-12: each construct of the random texts gives only allowed elements."""
    check(render.render(text))


@settings(deadline=None)
@given(pieces())
def test_random_text_yields_only_our_markup(cut: list[str]) -> None:
    """MSG-12: random Markdown gives only allowed elements."""
    stream = MarkdownStream()
    for piece in cut:
        stream.feed(piece)
        check(stream.tail_html())
    stream.finish()
    check("".join(stream.blocks))


@pytest.mark.parametrize("url", SCHEMES[:26])
def test_unsafe_address_stays_text(url: str) -> None:
    """MSG-12: an address that is not http, https or mailto is not linked but shown as written."""
    html = render.render(f"[a](<{url}>)")
    assert "href" not in html
    assert check(html).startswith("[a](")


@pytest.mark.parametrize("html", HTML)
def test_raw_html_is_shown_as_text(html: str) -> None:
    """MSG-12: HTML in the text is shown, not interpreted."""
    said = html.replace("\0", "\ufffd").replace("&lt;", "<").replace("&gt;", ">")
    assert check(render.render(f"`` {html} ``")) == html.replace("\0", "\ufffd")
    assert check(render.render(f"x{html}").replace("<em>", "*").replace("</em>", "*")) == "x" + said


@pytest.mark.parametrize("info", INFO)
def test_code_label_cannot_leave_its_place(info: str) -> None:
    """MSG-12: the language of a code block is a short label, for any language."""
    (block,) = render.blocks(f"~~~{info}\ncode\n~~~")
    label = block.split('<span class="code-lang">')[1].split("</span>")[0]
    assert len(check(f"<p>{label}</p>")) <= 40
    (unnamed,) = render.blocks("~~~\ncode\n~~~")
    assert block == unnamed.replace('code-lang">', f'code-lang">{label}')
