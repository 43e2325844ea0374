"""The HTML of finished Markdown: complete, and safe for any text."""

import pytest

from chat.rendering.markdown import highlight, render
from chat.rendering.markdown.blocks import normalize
from chat.rendering.markdown.external_images import is_signed, signature
from chat.rendering.markdown.render import BlockCache
from tests.rendering.documents import ANSWER, TRAPS

REL = 'rel="noopener noreferrer nofollow"'
LINK = f'target="_blank" {REL}'
LANGUAGES = {
    "python": "def f(): return None",
    "js": "const a = () => null;",
    "ts": "let a: string = 'b';",
    "tsx": "const a = <b c={d}/>;",
    "json": '{"a": [1, true]}',
    "yaml": "a:\n  - 'b'",
    "toml": '[a]\nb = "c"',
    "html": "<p class='a'>b</p>",
    "css": "a { color: red }",
    "bash": "if [ -f a ]; then echo 'b'; fi",
    "powershell": "Get-Item 'a' | Out-Null",
    "sql": "SELECT a FROM b WHERE c = 'd'",
    "c": "int main(void) { return 0; }",
    "c++": "class A : public B {};",
    "c#": 'var a = new A("b");',
    "java": "public class A { }",
    "kotlin": "fun a(): Int = 1",
    "go": 'func main() { fmt.Println("a") }',
    "rust": "fn main() { let a = 1; }",
    "swift": 'let a = "b"',
    "ruby": "def a; :b; end",
    "php": "echo 'a';",
    "perl": "my $a = 'b';",
    "lua": "local a = nil",
    "r": "a <- function(b) NULL",
    "julia": "function a() 1 end",
    "haskell": "module A where\na :: Int",
    "elixir": "defmodule A do\nend",
    "clojure": "(defn a [b] nil)",
    "dockerfile": "FROM a\nRUN b",
    "diff": "-a\n+b",
    "scala": "object A { val b = 1 }",
}


@pytest.mark.parametrize(("language", "code"), LANGUAGES.items())
def test_code_is_colored_and_complete(language: str, code: str) -> None:
    """MSG-12: code in thirty languages is shown character by character, in colors of classes only."""
    (block,) = render.blocks(f"```{language}\n{code}\n```")
    body = block.split('<code class="hl">')[1].split("</code>")[0]
    assert '<span class="' in body
    plain = body.replace("</span>", "").replace("&lt;", "<").replace("&gt;", ">")
    for css in {part.split('"')[0] for part in plain.split('<span class="')[1:]}:
        plain = plain.replace(f'<span class="{css}">', "")
    assert plain == code + "\n"


def test_code_block_has_a_head_with_language_and_buttons() -> None:
    """UI-11, UI-13: label, wrap, download and copy are above the code, in the reader's language."""
    assert render.blocks("```JS x=1\na < b\n```")[0].replace('<span class="o">&lt;</span>', "&lt;") == (
        '<div class="code" data-file="js"><div class="code-head"><span class="code-lang">JavaScript</span>'
        '<button type="button" class="wrap" data-action="wrap-code" aria-labelledby="w-wrap"></button>'
        '<button type="button" class="download" data-action="download-code" aria-labelledby="w-download"></button>'
        '<button type="button" class="copy" data-action="copy-code" aria-labelledby="w-copy"></button></div>'
        '<pre tabindex="0"><code class="hl">a &lt; b\n</code></pre></div>'
    )


@pytest.mark.parametrize(
    ("written", "label"),
    [("py", "Python"), ("c++", "C++"), ("sh", "Bash"), ("svg", "SVG"), ("rust", "Rust"), ("text", ""), ("foo", "foo")],
)
def test_language_is_called_what_people_call_it(written: str, label: str) -> None:
    """UI-11: the name is the common name of the language, none for plain text, and an unknown one as written."""
    assert f'<span class="code-lang">{label}</span>' in render.blocks(f"```{written}\nx\n```")[0]


def test_changed_lines_of_a_diff_are_marked_whole() -> None:
    """UI-11: the mark includes the line end, so that it covers the width of the block."""
    (block,) = render.blocks("```diff\n x\n-a\n-b\n+c\n```")
    assert ' x\n<span class="gd">-a\n-b\n</span><span class="gi">+c\n</span></code>' in block


@pytest.mark.parametrize("code", ["x = 1\n" * 5_000, "x = '" + "a" * 2_000 + "'", "x = 1" + "\n" * 500 + "y = 2"])
def test_code_too_long_to_read_stays_plain(code: str) -> None:
    """MSG-12: a huge block is shown whole, without the cost of colors."""
    (block,) = render.blocks(f"```python\n{code}\n```")
    assert "<span class=" not in block.split("<pre")[1]
    assert code in block


def test_code_that_takes_too_long_stays_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-12: a lexer that takes too long costs the colors, not the code."""
    monkeypatch.setattr(highlight, "MAX_SECONDS", 0)
    assert '<code class="hl">def f(): pass\n</code>' in render.draw_all("```python\ndef f(): pass\n```")[0]


def test_table_scrolls_and_aligns_by_class() -> None:
    """UI-01: no inline style, which the CSP would drop."""
    assert render.blocks("| a | b |\n|:-:|--|\n| *c* | d |") == (
        '<div class="table"><button type="button" class="csv" data-action="copy-csv" aria-labelledby="w-csv"></button>'
        '<div class="table-wrap" tabindex="0" role="group" aria-labelledby="w-table"><table>'
        '<thead><tr><th class="center">a</th><th>b</th></tr></thead>'
        '<tbody><tr><td class="center"><em>c</em></td><td>d</td></tr></tbody></table></div></div>',
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**“你好”**世界", "<strong>“你好”</strong>世界"),
        ("这是**重点：**内容", "这是<strong>重点：</strong>内容"),
        ("**粗体。**后面**注意!**请", "<strong>粗体。</strong>后面<strong>注意!</strong>请"),
        ("中文**（a）**中文**（b）**", "中文<strong>（a）</strong>中文<strong>（b）</strong>"),
        ("使用**`ls`**列出", '使用<strong><code dir="ltr">ls</code></strong>列出'),
        ("***“你”***好", "<em><strong>“你”</strong></em>好"),
        ("*“斜体”*文字 ~~“删除”~~文字", "<em>“斜体”</em>文字 <s>“删除”</s>文字"),
        ("**日本「テスト」**です**테스(a)**는", "<strong>日本「テスト」</strong>です<strong>테스(a)</strong>는"),
        ("5 * 3 * 中 ** 文 **x", "5 * 3 * 中 ** 文 **x"),
        ("_“x”_世 a**“b”**c", "_“x”_世 a**“b”**c"),
    ],
)
def test_emphasis_needs_no_spaces_in_chinese_japanese_and_korean(text: str, html: str) -> None:
    """UI-01: next to such a character, marks work as next to a space. In other text CommonMark's rule holds."""
    assert render.blocks(text) == (f"<p>{html}</p>",)


@pytest.mark.parametrize("tag", ["<br>", "<br/>", "<br />", "<BR>"])
def test_cell_has_several_lines(tag: str) -> None:
    """UI-01: `<br>` is the only line break that a cell can have, and is followed by a line break for copies as text."""
    (block,) = render.blocks(f"| a |\n|---|\n| b{tag}c |")
    assert "<td>b<br>\nc</td>" in block


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("H<sub>2</sub>O, m<SUP>*-2*</SUP>", "H<sub>2</sub>O, m<sup><em>-2</em></sup>"),
        ("`<br>` \\<br>", '<code dir="ltr">&lt;br&gt;</code> &lt;br&gt;'),
        ("<sub>a <sup>b</sub>", "&lt;sub&gt;a &lt;sup&gt;b&lt;/sub&gt;"),
        (
            "[x <sub>[b](https://u)</sub>](https://v)",
            f'[x <sub><a href="https://u" {LINK}>b</a></sub>](<a href="https://v" {LINK}>https://v</a>)',
        ),
        ("<b>a</b> <br a=b>", "&lt;b&gt;a&lt;/b&gt; &lt;br a=b&gt;"),
        ("<sub>`a</sub>` <sup></sup>", '&lt;sub&gt;<code dir="ltr">a&lt;/sub&gt;</code> &lt;sup&gt;&lt;/sup&gt;'),
    ],
)
def test_only_line_breaks_and_raised_or_lowered_text_are_html(text: str, html: str) -> None:
    """UI-01: indices are lowered and powers are raised. Other tags, tags in code and tags with attributes are text."""
    assert render.blocks(text) == (f"<p>{html}</p>",)


def test_task_list_shows_boxes_that_cannot_be_clicked() -> None:
    """UI-01: the boxes are shown, but disabled."""
    assert render.blocks("- [x] a\n- [ ] b") == (
        '<ul><li class="task"><input type="checkbox" disabled="" aria-labelledby="w-task" checked=""> a</li>'
        '<li class="task"><input type="checkbox" disabled="" aria-labelledby="w-task"> b</li></ul>',
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("See https://a.b/c_d(e).", f'See <a href="https://a.b/c_d(e)" target="_blank" {REL}>https://a.b/c_d(e)</a>.'),
        ("https://a.b即可", f'<a href="https://a.b" target="_blank" {REL}>https://a.b</a>即可'),
        ("https://a.b:99999 https://{a}.b", "https://a.b:99999 https://{a}.b"),
        ("**www.a.bc**", f'<strong><a href="https://www.a.bc" target="_blank" {REL}>www.a.bc</a></strong>'),
        ("`https://a.b` main.py www.a ftp://b.c", '<code dir="ltr">https://a.b</code> main.py www.a ftp://b.c'),
        ("[see https://a.b](https://c.d)", f'<a href="https://c.d" target="_blank" {REL}>see https://a.b</a>'),
        ("[a](https://b.c 'd')", f'<a href="https://b.c" title="d" target="_blank" {REL}>a</a>'),
        ("<mailto:a@b.c>", f'<a href="mailto:a@b.c" target="_blank" {REL}>mailto:a@b.c</a>'),
        ("[a](/b)", "[a](/b)"),
        ("[a](ftp://b.c)", "[a](ftp://b.c)"),
        ("![a](mailto:b@c.d)", '<span class="ext-img">a</span>'),
        (
            "[![a](https://b.c)](https://d.e)",
            f'<a href="https://d.e" target="_blank" {REL}><span class="ext-img">a</span></a>',
        ),
        ("![](/a.png)", "![](/a.png)"),
    ],
)
def test_address_is_safe_to_follow_and_never_loads_by_itself(text: str, html: str) -> None:
    """UI-01: links send no referrer; images in links are names; other schemes stay text."""
    assert render.blocks(text) == (f"<p>{html}</p>",)


@pytest.mark.parametrize(
    ("text", "address", "name"),
    [
        ("![a *b*](https://c.d/e?f=g)", "https://c.d/e?f=g", "a b"),
        ("![](https://c.d/e.png)", "https://c.d/e.png", "e.png"),
        ("![](http://c.d)", "http://c.d", "c.d"),
    ],
)
def test_picture_from_elsewhere_waits_for_a_click(text: str, address: str, name: str) -> None:
    """UI-01: the page shows its name, its host, and a signature that lets only this image be fetched."""
    host = address.split("/")[2]
    assert render.blocks(text) == (
        '<p><span class="ext-img"><button type="button" class="load" data-action="load-picture"'
        f' data-picture="{signature(address)}"><bdi>{name}</bdi></button>'
        f'<a href="{address}" target="_blank" {REL}>{host}</a></span></p>',
    )
    assert is_signed(address, signature(address))
    assert not is_signed(address + "x", signature(address))


def test_render_wraps_each_block() -> None:
    """LIVE-01: a page holds the blocks as a client appends them."""
    assert (
        render.render("a\n\nb")
        == '<div class="block" dir="auto"><p>a</p></div><div class="block" dir="auto"><p>b</p></div>'
    )


def test_odd_characters_are_shown_or_replaced() -> None:
    """MSG-12: NUL and lone surrogates become U+FFFD, pairs are joined, everything can be encoded."""
    assert render.blocks("a\0b \ud83d c \ud83d\ude00 \u202eابج") == ("<p>a\ufffdb \ufffd c 😀 \u202eابج</p>",)


@pytest.mark.parametrize("depth", [50, 500])
def test_deep_nesting_is_shown_as_source(depth: int) -> None:
    """MSG-10: a block that cannot be rendered is shown as source, and the rest of the text as usual."""
    deep = "> " * depth + "a < b"
    assert render.blocks(f"before\n\n{deep}\n\nafter") == (
        "<p>before</p>",
        f'<pre class="plain"><code>{deep.replace("<", "&lt;").replace("> ", "&gt; ")}</code></pre>',
        "<p>after</p>",
    )


@pytest.mark.parametrize("text", ["![" * 2_000 + "](https://a)" * 2_000, "[" * 5_000, "*_" * 5_000, "a" + "`" * 9_999])
def test_hostile_text_is_shown(text: str) -> None:
    """MSG-10: text made to break parsers is still text."""
    assert len("".join(render.blocks(text))) >= len(text) / 10


@pytest.mark.parametrize("text", TRAPS)
def test_everything_said_can_be_encoded_and_drawn_again(text: str) -> None:
    """MSG-12: the HTML is the same each time, with and without the cache, and is valid UTF-8."""
    assert render.blocks(text) == render.blocks(text) == render.draw_all(normalize(text))
    assert render.render(text).encode().decode() == render.render(text)


def test_cache_is_bounded_by_characters() -> None:
    """MSG-12: huge texts do not push everything else out, and the oldest leave first."""
    cache = BlockCache(limit=160_000)
    cache.put("huge", ("x" * 20_000,))
    assert cache.get("huge") is None
    for number in range(30):
        cache.put(f"text {number}", ("x" * 7_000,))
        cache.get("text 5")
    kept = [number for number in range(30) if cache.get(f"text {number}")]
    assert kept == [5, *range(10, 30)]


def test_answer_draws_every_kind_of_block() -> None:
    """UI-01: an everyday answer, block by block."""
    starts = [block.split(">")[0].split(" tabindex")[0] for block in render.blocks(ANSWER)]
    assert starts == [
        "<p",
        '<div class="table"',
        "<h2",
        "<ol",
        '<div class="code" data-file="py"',
        "<blockquote",
        '<div class="formula"',
        "<hr",
        "<p",
    ]
