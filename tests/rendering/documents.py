"""Markdown for tests: a common answer, difficult texts, and random texts."""

from hypothesis import strategies as st

ANSWER = """Found it. One query takes **812 ms** on average, and only on Fridays (see `import.sql`):

| Day | p95 | rows |
|:----|----:|:----:|
| Fri | 940 ms | *4.8M* |
| Mon | 210 ms | 1.2k |

## What to do

1. **Keep the index.** It is `O(n)` today:

   ```sql
   CREATE INDEX CONCURRENTLY i ON cart (id) WHERE gone IS NULL;
   ```

2. Watch it, as [the manual][m] says.
   - [x] measured
   - [ ] fixed
3. 这是一个常见问题，**建议**先保留索引。هذا نص عربي. 👩‍💻

```python
def f(x: int) -> str:
    return f"{x} < 1"  # never & "ever"
```

> Quoted,
lazily: $O(n^2)$ for $5.

$$
\\sum_{i=1}^n i = \\frac{n(n+1)}{2}
$$

[m]: https://example.org/manual "The manual"

---
Done~~?~~!
"""

TRAPS = (
    "",
    "\n\n",
    "1986. A year\n1. item\n2",
    "Foo\n-",
    "Foo\n---",
    "Foo\n===\nbar\n- - -",
    "a | b\n-|-\nc | d\n\ne | f",
    "a | b\n- | -",
    "| a |\n|---|\n| b | c |\n| `d|e` |\nend",
    '[foo]: /url\n"title" ok',
    '[foo]: https://u\n"ti\ntle"\n[foo]',
    "[foo]\n\n[foo]: <https://u> 'x'\n\n[foo]",
    "[b][c][a][c]\n\n[c]: https://y\n\nx\n\n[a]: https://x\n\ny\n\n[b]: https://z\n\nz",
    "[foo]: https://one\n[foo]: https://two\n\n[foo] [bar][foo] [foo][]",
    "- [a]: https://u\n'ti\ntle'\n\n> [b]: https://v\n(t)\n\n[^c]: [d]: https://w\n(t)\n\n- > [e]: https://x\n'f' g",
    "[a]: https://u\n'b\n===\nc'\n\n[d]: https://v \"e\n--\nf\"\n\n- [g]: https://w\n  'h\n  ===\n  i'\n\n[a] [d] [g]",
    "[a]: https://u\n'" + "b\n" * 12 + "c'\n[a]",
    "para\n```abc`def",
    "para\n```abc\ncode",
    "```\na\n``\n ```\nb\n    ```\n````\nafter",
    "```a | b\n---|---\nc | d\n```",
    "~~~|x\n|-|-|\ny\n~~~",
    "~~~ info ~~~\n```\n~~~\nx",
    "- a\n\n- b\n- c\n\n\n  d\n    - e",
    "- a\n  - b\n\n    c\n- d\n",
    "- [x]: https://u\n- a [x]\n- b [x]\n- [y]: https://v\n- c [y]\n- d [y] [x]",
    "- x\n- a | b\n--|--\nc | d\n|e|f|",
    "- a\n- b\n- [x]: https://u\n- c [x]\n- d [x]",
    "- a\n   1. b\n   \n   1. c\n- d\n\n- e",
    "- a\n\n- b\n\n-c\n\n* d\n\n**e**",
    "1. a\n2.5 b\n2. c\n3. d\n\n3.d",
    "9. a\n   - b\n10. c\n   - d\n11. e\n\n    f\n\n12. g",
    "- ```\n  a\n  ```\n\n- # b\n  c\n- d",
    "| a | b |\n|--|--|\n| c |\n|d|e|f|\n- g\n| h |",
    "-\n\n  foo\n- \n  bar",
    "- [x] done\n- [ ] open\n- [x]\n- [X](https://x)\n- [xy] no",
    "* a\n+ b\n1) c\n2. d",
    "+ - + - a",
    "> a\nb\n> - c\nd\n\n> e",
    "    code\n\n    more\nno code\n\ttab",
    "# a #\n# b \\#\n#c\n####### d\n## e ## f #",
    "a  \nb\\\nc   \n d",
    "*a *b* c** d_e_f __g__h ***i***",
    "*a**b c* __d_e *f* g_ ~~h~~~i",
    "[a](https://b)c ![d](https://e)f <https://g>h `i`j",
    "`a `` b` `` ` ``",
    "[a](https://b 'c) d",
    "[a](<https://b> (c)) [d] (e) [f]( g",
    "![a *b*](https://c) [![d](https://e)](https://f) ![](https://g)",
    "<https://a.b/c?d=e&f> <x@y.z> <b>&amp;&#35;&#x22;&nope;</b> &am",
    "&nbsp;a&nbsp;\u00a0b\u3000",
    "see https://a.b/c_d(e). www.f.gh, then x",
    "（https://a.b/c）www.d.ef。www.g https:// ftp://h",
    "**https://a.b**c [x https://d.e](https://f) `https://g` <https://h>i ![https://j.k](https://l)",
    "看https://a.b查www.a.bc和http://c:80即，https://d.e’s https://f—g https://h…i https://{j}.k https://l:99999 m",
    "| https://a.b | www.c.de |\n|--|--|\n| https://f.g | h |\n\n- https://i.j\n- www.k.lm",
    "\\*a\\* \\[b] \\",
    "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg",
    "x\r\ny\rz\r\n\r\n- a\r\n- b",
    "a\0b \ud83d \ude00 \ud83d\ude00",
    "😀**😀**😀",
    "**“你好”**世界，这是**重点：**内容。中文**（a）**中文**（b）** 和 ~~“c”~~d *“e”*文 ** 文 **f _“g”_文",
    "a<br>b<BR/> c<br  />\nd <br e>f<br\n> H<sub>2</sub>O m<SUP>[1] *2*</sup> <sub>a <sub>b</sub> `<br>` \\<br> &lt;",
    "| a<br>b<br | <sub>c |\n|--|--|\n| <br /> | <sup>d</sup> |\n| [e<br>f](https://u) | <sup>[g](https://h<br>",
    "*a<sup>b*</sup> <sup>`</sup>` <sub>$</sub>$ [a <sub>](https://u) b</sub> <sup></sup> <sub>**</sub>c**</sub>",
    "使用**`npm`**安装**[链接](https://a)**后 [x**“y”**文](https://b)**“z”**。**注意!**\n**테스트(a)**는",
    "Hello\n" + "> " * 60 + "deep",
    "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(22)) + "\nafter",
    "*" * 50 + "a" + "[" * 50 + "b" + "![" * 30,
    "1. a\n\n   ```py\n   x\n   ```\n\n   | a |\n   |---|\n   | b |\n2. c",
    "a $x^2$ b $5 and $10 c $y_1$5 d\\$e$ f$g$ $h$",
    "$$\nx^2\n$$\nafter\n\n$$x$$\n$$y$$ z\n$$\\alpha\n\nopen",
    "text\n$$ \\begin{aligned} a &= b \\\\\n- c &= d\n\\end{aligned} $$\nmore",
    "\\[\nx\n\\]\n\\[1\\] \\[ y \\] \\(z\\) \\[a\nb=c\\]\n\n\\[d\\]: https://u\n\\[e=f\\]",
    "- $$\n  x\n  $$\n- $$\ny\n$$\n> $$\n> a\nb\n$$",
    "$$ \\a | b $$\n---|---\nc | d\n\n| $x$ | \\(y\\) |\n|--|--|\n| $$ |\n$$\n$$",
    "is：$$\nx\n$$\nwith $y$ **b**\n- c\n\n$$\nx\n$$，其中 **d** [e]\nf\n\n- g：$$\n  x\n  $$ [e]\n- h\n\n[e]: https://u",
    "\\[\nx\n\\]. **a** [b]\n\\[\ny\n\\]，c\n> $$\n> z\n> $$ d\n> e\n\n[b]: https://u\n\n$$\n$$ f\n$$ g\n$$",
    "a $$\n$$x$$\n$$\nb\n$$\n\n> c$$\n> d\n$$ e\n\nf $$\n\n$$\nx\n$$",
    "[foo]: https://u\n$$x$$\n[foo] $[foo]$ `$a` $`b$`",
    "a[^1] b[^B] [c][^1] [^1](https://u) [^1]: d\n[^1]: one\n[^b]: two\n[^1]: again\n\n[^1]\n\n[^c]",
    "[^1]\n\n[^1]:\n[^2]: - a\n    - b\n\n    c\n\n      d\n\n        e\n   f\n\nend[^2]",
    "para\n[^1]: note\nlazy\n- a\n[^2]: b\n> c\n[^3]: d\n\n| e |\n|---|\n| f |\n[^4]: g\n\n[^4] [^3] [^2]",
    "- a[^1]\n\n  [^1]: b\n\n      c\n- d\n\n> e[^2]\n>\n> [^2]: f\n> g\n\n![^1](https://u) ![a[^1]](https://u)",
    "[^a]: ```py\n    x\n    ```\n\n[^b]: | a |\n    |---|\n    | b |\n\n[^a b]: https://u\n[^a b] [^]: [^",
    "> [!NOTE]\n> a\n> - b\n\n> [!tip] no\n> c\n\n> [!CAUTION]  \nlazy\n\n> [!WARNING]",
    "- > [!IMPORTANT]\n  > a\n  >\n  > > [!TIP]\n  > > ```\n  > > b\n- c\n\n[!NOTE]\n> x\n> [!NOTE]",
    "```mermaid\ngraph TD\nA-->B\n```\n~~~HTML\n<b>\n~~~\n```svg\n<svg/>",
    ANSWER,
)

_ATOMS = (
    *("a", "b ", "word ", "foo bar ", "x", "中文", "，", "文**“", "”**文", "。*", "é", "😀", "ℵ", "²", "½", "1", "3"),
    *("1. ", "2. ", "10) ", "- ", "* ", "+ ", "-", "---", "===", "\n---\n", "* * *", "# ", "## ", " #", "#", "> ", ">"),
    *(" ", "  ", "   ", "    ", "\t", "\n", "\n", "\n\n", "\n\n", "  \n", "\\\n", "\r", "\r\n", "\0", "\u3000", "\xa0"),
    *("*", "**", "_", "__", "`", "``", "```", "~~", "~~~", "```py\n", "```py", "\n```\n", "\n```", "  ```\n", "~~~\n"),
    *("|", " | ", "|-|-|\n", "| a | b |\n", "|:-|-:|\n", "- [x] ", "[ ] ", "x] "),
    *("[", "]", "(", ")", "[a]", "[a]: /u", "[a]: https://u", '[b]: https://v "t"\n', '"', "'", "(t)", "](https://x)"),
    *("[^1]", "[^a]", "[^1]: ", "\n[^a]: x\n", "\n\n[^1]: y", "^", "> [!NOTE]\n> ", "[!tip]", "!"),
    *("![", "![a](https://i)", "<", "<https://a.b>", "<b>", "&", "&amp;", ";", "&#32;", "amp;", "\\"),
    *("<br>", "<br ", "/>", "<sub>", "</sub>", "<sup>", "</sup>"),
    *("https://", "http", "://", "www.", "www.a.bc", "https://a.b/c", "a.b", ".c", "https://a.b查", "’", "—"),
    *(":80", "{a}"),
    *("$", "$$", "$x$", "\n$$\n", "$$\n", "\\(", "\\)", "\\[", "\\]", "\\frac{a}{b}", "x^2", "$$\\a", "$$ b"),
    *("：$$\n", "\n\\]. c"),
    *("!", "?", ".", ":", "/", ",", "=", "{", "}", "$", "%", "^", "@", "\ud83d", "\ude00", "\u2028", "\x0c", "\ufeff"),
)
_WORDS = (
    "the quick 狐狸 jumps over **lazy** dogs and `cats` say *hello* [here](https://x) in 2024, 10:30 (see) a_b it's"
    " $x_1$ $5 \\(y\\)"
)


def _item(lines: list[str]) -> str:
    return "- " + "\n  ".join(lines)


_line = st.lists(st.sampled_from(_WORDS.split()), min_size=1, max_size=8).map(" ".join)
_lines = st.lists(_line, min_size=1, max_size=3)
_block = st.one_of(
    _lines.map("\n".join),
    _line.map("## {}".format),
    st.lists(_lines.map(_item), min_size=1, max_size=4).map("\n".join),
    st.lists(_lines.map(_item), min_size=1, max_size=4).map("\n\n".join),
    st.lists(_line.map("1. {}".format), min_size=1, max_size=4).map("\n".join),
    _lines.map(lambda lines: "```python\n" + "\n".join(lines) + "\n```"),
    _lines.map(lambda lines: "> " + "\n> ".join(lines)),
    st.lists(_line, min_size=1, max_size=4).map(
        lambda rows: "| a | b |\n|---|--:|\n" + "".join(f"| {r} | 1 |\n" for r in rows)
    ),
    _line.map("[here]: https://example.org/ '{}'".format),
)

scraps = st.lists(st.sampled_from(_ATOMS), max_size=40).map("".join)
answers = st.lists(_block, max_size=6).map("\n\n".join)
texts = st.one_of(
    scraps, answers, st.tuples(answers, scraps, answers).map("\n".join), st.sampled_from(TRAPS), st.text()
)


@st.composite
def pieces(draw: st.DrawFn) -> list[str]:
    """Return a text split at random positions."""
    text = draw(texts)
    size = draw(st.sampled_from([1, 3, 30]))
    cuts = draw(st.lists(st.integers(1, size), min_size=1, max_size=20))
    cut: list[str] = []
    at = 0
    while at < len(text):
        step = cuts[len(cut) % len(cuts)]
        cut.append(text[at : at + step])
        at += step
    return cut
