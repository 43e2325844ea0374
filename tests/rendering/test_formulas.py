r"""Formulas: LaTeX between dollars or \( \) as MathML, and nothing but that."""

import re

import pytest

from chat.rendering.markdown import render
from chat.rendering.markdown.mathml import MAX_SOURCE, mathml
from tests.rendering.allowed import check
from tests.rendering.test_markdown_stream import stream_blocks

X_SQUARED = '<math display="inline" alttext="x^2"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'


@pytest.mark.parametrize("text", ["$x^2$", r"\(x^2\)", r"\( x^2 \)"])
def test_formula_within_a_line(text: str) -> None:
    """UI-01: dollars and round brackets hold a formula."""
    assert render.blocks(f"a {text}, b") == (f"<p>a {X_SQUARED}, b</p>",)
    assert render.blocks(f"是{text}的") == (f"<p>是{X_SQUARED}的</p>",)


def test_formula_keeps_its_source() -> None:
    """UI-11: the source is the text of a copied formula, and it cannot end its attribute."""
    (block,) = render.blocks(r"""| $a<b \& "c'$ |""" + "\n|---|")
    assert r"""alttext="a<b \&amp; &quot;c'">""" in block.replace("&lt;", "<")
    check(block)


@pytest.mark.parametrize(
    "latex",
    [
        r"\triangle ABC \cong \triangle DEF",
        r"AB \parallel CD",
        r"Aa \times Aa",
        r"dx \wedge dy",
        r"\mu mg \le ma",
        r"NaCl \to Na^+",
        r"Area = length \times width",
    ],
)
def test_names_on_both_sides_of_a_command_are_a_formula(latex: str) -> None:
    """UI-01: two words with a command between them are not prose."""
    for text in (f"${latex}$", rf"\({latex}\)"):
        assert render.blocks(text) == (f"<p>{mathml(latex, display=False)}</p>",)


def test_ordinal_after_a_formula() -> None:
    """UI-01: a formula ends before the letters of an ordinal number, but not before other letters."""
    drawn = mathml("k", display=False)
    assert render.blocks("the $k$th, $k$nd") == (f"<p>the {drawn}th, {drawn}nd</p>",)
    assert render.blocks("the $k$this $5th") == ("<p>the $k$this $5th</p>",)


@pytest.mark.parametrize("text", ["$$\nx^2\n$$", "$$x^2$$", "\\[\nx^2\n\\]", r"\[ x^2 \]", "$$ \\displaystyle\nx^2 $$"])
def test_formula_on_lines_of_its_own(text: str) -> None:
    """UI-01: a display formula scrolls on its own, and the text continues after it."""
    formula, after = render.blocks(text + "\nafter")
    assert formula.startswith('<div class="formula" tabindex="0" role="group" aria-labelledby="w-formula"><math ')
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in formula
    assert after == "<p>after</p>"


ROWS = "\\begin{aligned}\na &= b \\\\\nc &= d \\\\[2pt]\n\\end{aligned}"
FORMULA, FORMULA_IN_ROWS = (
    f'<div class="formula" tabindex="0" role="group" aria-labelledby="w-formula">{mathml(latex, display=True)}</div>'
    for latex in ("x", ROWS)
)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (
            "is：$$\nx\n$$\nwith **b**\n- c",
            (f"<p>is：{mathml('x', display=True)}\nwith <strong>b</strong></p>", "<ul><li>c</li></ul>"),
        ),
        ("$$\nx\n$$，其中 **b**", (f"{FORMULA}<p>，其中 <strong>b</strong></p>",)),
        ("$$\nx\n$$ where **b**\nnext", (f"{FORMULA}<p>where <strong>b</strong></p>", "<p>next</p>")),
        ("\\[\nx\n\\].\n\n**b**", (f"{FORMULA}<p>.</p>", "<p><strong>b</strong></p>")),
        ("- is: $$\n  x\n  $$\n- b", (f"<ul><li>is: {mathml('x', display=True)}</li><li>b</li></ul>",)),
        ("- $$\n  x\n  $$ b\n- c", (f"<ul><li>{FORMULA}<p>b</p></li><li>c</li></ul>",)),
        ("a $$\n$$x$$", ("<p>a $$</p>", FORMULA)),
        ("a\n$$\nx\n$$\nb", ("<p>a</p>", FORMULA, "<p>b</p>")),
        ("$$\nx\n$$\n$$\nx\n$$", (FORMULA, FORMULA)),
        ("$$\nx$$ where **b**\nnext", (f"{FORMULA}<p>where <strong>b</strong></p>", "<p>next</p>")),
        ("$$\nx\n  $$，a", (f"{FORMULA}<p>，a</p>",)),
        ("\\[\nx\\], so\nb", (f"{FORMULA}<p>, so</p>", "<p>b</p>")),
        (f"$${ROWS}$$，a", (f"{FORMULA_IN_ROWS}<p>，a</p>",)),
        (f"\\[{ROWS}\\].", (f"{FORMULA_IN_ROWS}<p>.</p>",)),
        ("`$$` a\n$$\nx\n$$\nb", ('<p><code dir="ltr">$$</code> a</p>', FORMULA, "<p>b</p>")),
        ("$$$ a \\$\\$\n$$\nx\n$$\nb", ("<p>$$$ a $$</p>", FORMULA, "<p>b</p>")),
    ],
)
def test_display_formula_glued_to_text(text: str, blocks: tuple[str, ...]) -> None:
    """UI-01: a formula ends at its closing dollars, and the text before and behind it is drawn as text."""
    assert render.blocks(text) == blocks
    assert stream_blocks(list(text), drawing=True) == blocks


def test_definition_reaches_the_text_behind_a_formula() -> None:
    """LIVE-01: a link that is defined later replaces the block of a formula and its text."""
    text = "$$\nx\n$$ see [it].\n\nEnd.\n\n[it]: https://a.b\n\nMore"
    assert '<a href="https://a.b"' in render.blocks(text)[0]
    assert stream_blocks(list(text)) == render.blocks(text)


@pytest.mark.parametrize(
    "text",
    [
        "$5 and $10",
        "from $20-$30 to $1,000.",
        "It costs US$ 6 (or A$7).",
        "$5 (or US$ 6)",
        "between $5 million and 10 million$ a year",
        "Set $HOME/$USER and $PATH:$PWD",
        "run $(date) or $x",
        "Ke$ha and A$AP",
        "$ x $",
        r"\$a\$",
        r"[\[1\]] and \[edit\]",
        r"an aside \(see the manual\)",
        "$$ is the process",
    ],
)
def test_what_only_looks_like_a_formula_stays_text(text: str) -> None:
    """MSG-12: prices, shell variables and escaped brackets stay text."""
    (block,) = render.blocks(text)
    assert "<math" not in block
    assert check(block) == re.sub(r"\\([$\[\]()])", r"\1", text)


@pytest.mark.parametrize("latex", [r"x^2^3", r"\frac{a", r"\newcommand{\a}{\b\b}\a", "{" * 900, "x" * (MAX_SOURCE + 1)])
def test_formula_that_cannot_be_drawn_is_shown_as_written(latex: str) -> None:
    """MSG-10: an invalid formula is shown as its source, in a code element."""
    (block,) = render.blocks(f"a ${latex}$")
    assert block == f'<p>a <code class="tex">${latex}$</code></p>'


@pytest.mark.parametrize(
    "latex",
    [
        r"\newcommand{\a}{x}\a",
        r"\new\label{}command{\a}{x}\a",
        r"\new\begin{equation}command{\a}{x}\a",
        r"\def\a{x}\a",
        r"\def1{x}1",
        r"\d\label{}ef\a{x}\a",
        r"\DeclareMathOperator{\a}{x}\a",
        r"\newenvironment{cases}{x}{x}\begin{cases} a \end{cases}",
    ],
)
def test_formula_defines_no_commands(latex: str) -> None:
    """MSG-12: a formula with a definition in any spelling is shown as source, because it could expand without end."""
    assert mathml(latex, display=True) is None
    assert mathml(latex, display=False) is None


def test_formulas_expand_by_their_source_at_most() -> None:
    """MSG-12: nested operators that the library converts twice are shown as source."""
    drawn = mathml(r"\sideset{_a^b}{_c^d}\prod", display=True)
    assert drawn is not None
    assert drawn.count("∏") == 2
    both = mathml(r"\sideset{_a}{^b}\prod x = \sideset{}{'}\sum y", display=True)
    assert both is not None
    assert (both.count("∏"), both.count("∑")) == (2, 2)
    assert mathml(r"\sideset{}{}{" * 8 + r"\sum" + "}" * 8, display=True) is None


@pytest.mark.parametrize(
    "latex",
    [
        r"\unknown{x}",
        r"\ce{2H2 + O2 -> 2H2O}",
        r"\begin{unknown} a & b \end{unknown}",
        r"\begin{unknown} a \end{unknown}",
        r"\left\unknown x \right.",
        r"\big\unknown",
        r"\big{(}",
        r"\mathunknown{x}",
        r"\operatorname*{\unknown}",
        r"\text{\unknown}",
        r"\text{if $x>0$, $y$}",
        r"{a \\ b}",
        r"\hline",
        r"a \hline b",
        r"\text{\hline}",
        r"\begin{array}{c} a \hline \end{array}",
        r"\begin{array}{@{}l} a \end{array}",
        "\ue001",
        "a & b",
    ],
)
def test_latex_that_is_not_known_is_shown_as_written(latex: str) -> None:
    """MSG-10: a formula is drawn only if all of its LaTeX is known, because it would be wrong otherwise."""
    assert mathml(latex, display=True) is None
    assert mathml(latex, display=False) is None


@pytest.mark.parametrize(
    "latex",
    [
        r"\text{<img src=x onerror=alert(1)>}",
        r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
        r"\href{javascript:alert(1)}{x}",
        r"\style{position:fixed;inset:0}{x}",
        r"\class{message copy}{x}",
        r"\hspace{-100em}x\hspace{900em}",
        r"\rule{100em}{100em}",
        r"\colorbox{red}{x}\color{url(//evil)}{x}",
        r"\unicode{x3c}script\unicode{x3e}",
        r"\operatorname{<style>*{display:none}</style>}",
        r"\begin{array}{c}</math><img src=x>\end{array}",
        r"\mathrm{<annotation-xml encoding='text/html'><script>alert(1)</script></annotation-xml>}",
    ],
)
def test_formula_yields_only_mathml(latex: str) -> None:
    """MSG-12: the MathML has only allowed elements, without links, styles or lengths that leave the line."""
    drawn = mathml(latex, display=False)
    assert drawn is None or check(drawn) is not None
    check("".join(render.blocks(f"${latex}$\n\n$$\n{latex}\n$$")))


def text_of(latex: str) -> str:
    """Return the characters of a display formula."""
    return check(mathml(latex, display=True) or "").replace("\xa0", " ")


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\text{50\% of \$5 \& \#1 max\_tokens\ a}", "50% of $5 & #1 max_tokens a"),
        (r"\bigl\{ x \bigr\}", "{x}"),
        (r"\Big\langle z \Big\rangle", "⟨z⟩"),
        (r"\Bigl\| x \Bigr\|_2", "‖x‖2"),
        (r"f \bigg\vert_{x=0}", "f|x=0"),
        (r"\left/ x \right\backslash", "/x\\"),
        (r"\begin{pmatrix*}[r] a \end{pmatrix*}", "(a)"),
        (r"\begin{aligned} a \end{aligned} [b]{2}", "a[b]2"),
    ],
)
def test_escaped_characters_and_delimiters(latex: str, text: str) -> None:
    """UI-01: escaped characters of a text and delimiters of any size are drawn as characters."""
    assert text_of(latex) == text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\boldsymbol{x\theta\epsilon 0}", "𝒙𝜽𝝐𝟎"),
        (r"\bm{\mu}\bm{A}", "𝝁𝑨"),
        (r"\mathbf{0}\mathbf{AB}\mathbf{\Sigma}", "𝟎𝐀𝐁𝚺"),
        (r"\mathbb{1}_{x>0}\mathds{1}\mathbb{Rk}", "𝟙x>0𝟙ℝ𝕜"),
        (r"\mathscr{L}\mathcal{AB}\mathfrak{gC}", "ℒ𝒜ℬ𝔤ℭ"),
        (r"\mathsf{T}\mathtt{a}\textbf{So 1}", "𝖳𝚊𝐒𝐨 𝟏"),
        (r"\mathbf{\hat é}\boldsymbol{(}", "é^("),
        (r"\mathrm{Var}\textit{it}", "Varit"),
    ],
)
def test_letters_have_their_style(latex: str, text: str) -> None:
    """UI-01: bold, double-struck and script letters are characters of their own, because browsers know no styles."""
    assert text_of(latex) == text


@pytest.mark.parametrize(
    ("latex", "known"),
    [
        (
            r"\begin{aligned}[t] a &= b \\[4pt] c &= d \label{x} \end{aligned}",
            r"\begin{aligned} a&=b\\c&=d \end{aligned}",
        ),
        (r"\begin{matrix} a \\[-.5 em] b \end{matrix}", r"\begin{matrix} a \\ b \end{matrix}"),
        (r"\begin{alignat*}{2} a &= b \notag \end{alignat*}", r"\begin{align} a &= b \end{align}"),
        (r"\begin{eqnarray} a &=& b \end{eqnarray}", r"\begin{array}{rcl} a &=& b \end{array}"),
        (r"\begin{dcases} a & b \end{dcases}", r"\begin{cases} a & b \end{cases}"),
        (r"\begin{rcases} a & b \end{rcases}", r"\left.\begin{array}{ll} a & b \end{array}\right\}"),
        (r"x = 1 \\ y = 2 \\", r"\begin{gathered} x = 1 \\ y = 2 \end{gathered}"),
        (r"x &= 1 \\ &= 2", r"\begin{aligned} x &= 1 \\ &= 2 \end{aligned}"),
        (
            r"\begin{equation} x = \{1\} \\ \N \end{equation}",
            r"\begin{gathered} x = \{1\} \\ \mathbb{N} \end{gathered}",
        ),
        (r"{x} \\", "{x}"),
        (r"\arg\min_x f", r"\argmin_x f"),
        (r"\operatorname*{arg\,max}_x f", r"\argmax_x f"),
        (r"\operatorname{SO(3)} \arg z", r"\mathrm{SO(3)} \operatorname{arg} z"),
        (r"\begin{cases} 1 \\R \\\R \end{cases}", r"\begin{cases} 1 \\ R \\ \mathbb{R} \end{cases}"),
        (r"\text{if $x>0$ and}", r"\hbox{if $x>0$ and}"),
        (r"a \tag{1}", r"a \qquad \text{(1)}"),
    ],
)
def test_common_latex_is_drawn_like_its_equivalent(latex: str, known: str) -> None:
    """UI-01: environments and commands that the library does not know are drawn like those that it knows."""
    drawn, expected = mathml(latex, display=True), mathml(known, display=True)
    assert drawn is not None
    assert expected is not None
    assert drawn.partition(">")[2] == expected.partition(">")[2]


@pytest.mark.parametrize(
    ("latex", "name"),
    [
        (r"\boxed{x}", "boxed"),
        (r"\fbox{x}", "boxed"),
        (r"\cancel{x}", "struck-up"),
        (r"\bcancel{x}", "struck-down"),
        (r"\xcancel{x}", "struck-twice"),
        (r"\sout{x}", "struck-out"),
    ],
)
def test_frames_and_strokes_are_classes(latex: str, name: str) -> None:
    """UI-01: a style sheet draws frames and strokes, which browsers do not know in MathML."""
    (block,) = render.blocks(f"${latex}$")
    assert check(block) == "x"
    assert f'<mrow class="{name}">' in block


@pytest.mark.parametrize(
    ("latex", "cells"),
    [
        (r"\begin{array}{cc|c} a & b & c \end{array}", ["", "", "line-before"]),
        (r"\begin{array}{|r||} a \\ \end{array}", ["right line-before line-after"]),
        (r"\begin{array}{c} \hline a \\ b \\[2pt] \hline \end{array}", ["line-above", "line-below"]),
        (
            r"\begin{array}{l|l} a & b \\ \hline c \end{array}",
            ["left", "left line-before", "left line-above line-after"],
        ),
        (r"\begin{pmatrix} a \\ \hline \begin{array}{c} b \end{array} \end{pmatrix}", ["", "line-above", ""]),
    ],
)
def test_lines_of_arrays_are_classes_of_cells(latex: str, cells: list[str]) -> None:
    """UI-01: an augmented matrix and a truth table have their lines."""
    (block,) = render.blocks(f"$$\n{latex}\n$$")
    check(block)
    assert [found[1] or "" for found in re.finditer(r'<mtd(?: class="([^"]*)")?>', block)] == cells


def test_lines_of_missing_cells_are_drawn_once() -> None:
    """MSG-10: rows that are much shorter than the list of columns do not multiply the MathML."""
    latex = r"\begin{array}{" + "c|" * 300 + "}" + r"a\\" * 300 + r"\end{array}"
    drawn = mathml(latex, display=True)
    assert drawn is not None
    assert len(drawn) < 60 * len(latex)


def test_environments_align_their_columns() -> None:
    """UI-01: aligned equations are below each other, by classes."""
    drawn = mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", display=True) or ""
    assert '<mtable displaystyle="true">' in drawn
    assert re.findall(r"<mtd[^>]*>", drawn) == ['<mtd class="right">', '<mtd class="left">'] * 2


def test_limits_stand_under_their_name_in_display() -> None:
    """UI-01: the limit of a display formula is below its name, as in print."""
    assert "<munder><mo>lim</mo>" in (mathml(r"\lim_{x \to 0} x", display=True) or "")


def test_matrix_takes_an_exponent() -> None:
    """UI-01: the exponent belongs to the matrix with its brackets."""
    drawn = mathml(r"\begin{pmatrix} a \end{pmatrix}^{T}", display=True) or ""
    assert drawn.count("<msup><mrow><mo>(</mo><mtable>") == 1


def test_one_long_word_between_dollars_takes_no_longer_than_others() -> None:
    """MSG-12: a long word between dollars takes linear time; searching again from each letter would take minutes."""
    assert "a" * 90_000 in render.render(f"${'a' * 90_000}$")
