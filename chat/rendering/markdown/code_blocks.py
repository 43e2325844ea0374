"""The HTML of code blocks: a header with the language and the buttons, and the code."""

from markdown_it.common.utils import escapeHtml, unescapeAll
from markdown_it.token import Token

from chat.rendering.budget import Meter
from chat.rendering.markdown.highlight import Colors, highlight, is_colorable, known_as, label

MAX_LABEL = 40
CODE_START = '<code class="hl">'

# The HTML is the same in all languages: buttons are labelled by hidden elements of the page.
_BUTTONS = (
    '<button type="button" class="wrap" data-action="wrap-code" aria-labelledby="w-wrap"></button>'
    '<button type="button" class="download" data-action="download-code" aria-labelledby="w-download"></button>'
    '<button type="button" class="copy" data-action="copy-code" aria-labelledby="w-copy"></button>'
)
_PREVIEW = '<button type="button" class="preview" data-action="preview" aria-labelledby="w-preview"></button>'
_DIAGRAM = (
    '<button type="button" class="show" data-action="show-diagram" aria-labelledby="w-diagram"></button>'
    '<button type="button" class="show" data-action="show-code" aria-labelledby="w-code"></button>'
)
# Buttons of finished blocks, by language.
_MORE = {"html": _PREVIEW, "htm": _PREVIEW, "svg": _PREVIEW, "mermaid": _DIAGRAM}

# Extensions of downloaded files, by the name of the lexer or as written. Others get `txt`.
_EXTENSIONS = {
    "ada": "adb",
    "apacheconf": "conf",
    "batch": "bat",
    "bash": "sh",
    "bibtex": "bib",
    "clojure": "clj",
    "cobol": "cob",
    "common-lisp": "lisp",
    "crystal": "cr",
    "csharp": "cs",
    "cuda": "cu",
    "delphi": "pas",
    "elixir": "ex",
    "emacs-lisp": "el",
    "erlang": "erl",
    "fortran": "f90",
    "fsharp": "fs",
    "gdscript": "gd",
    "haskell": "hs",
    "javascript": "js",
    "julia": "jl",
    "kotlin": "kt",
    "latex": "tex",
    "make": "mk",
    "markdown": "md",
    "matlab": "m",
    "mermaid": "mmd",
    "mysql": "sql",
    "nginx": "conf",
    "objective-c": "m",
    "ocaml": "ml",
    "pascal": "pas",
    "perl": "pl",
    "postgresql": "sql",
    "powershell": "ps1",
    "prolog": "pl",
    "protobuf": "proto",
    "puppet": "pp",
    "purescript": "purs",
    "python": "py",
    "racket": "rkt",
    "ruby": "rb",
    "rust": "rs",
    "solidity": "sol",
    "sqlite3": "sql",
    "terraform": "tf",
    "tsql": "sql",
    "typescript": "ts",
    "vbnet": "vb",
    "verilog": "v",
    "wast": "wat",
}
_SAME = (
    "asm awk c cmake cpp css csv cue d dart diff elm fish glsl go graphql groovy hcl hlsl html ini java json json5"
    " jsonnet jsx less lua nasm nim nix php properties r rst sass scala scheme scss sql svg swift tcl toml tsv tsx vhdl"
    " vim vue xml yaml zig"
)
_EXTENSIONS |= {name: name for name in _SAME.split()}
EXTENSIONS = frozenset(_EXTENSIONS.values())


def language_of(fence: Token) -> str:
    """Return the language that is written after a fence, or "" if there is none."""
    return next(iter(unescapeAll(fence.info).split(maxsplit=1)), "")


def draw_code(code: str, language: str, *, final: bool, colors: Colors, meter: Meter | None) -> str:
    """Draw a block of code. Only a final one is highlighted and gets buttons for previews and diagrams."""
    has_colors = final and is_colorable(code, language) and colors.allow(code, language)
    body = (has_colors and highlight(code, language, meter, colors)) or escapeHtml(code)
    name = escapeHtml(label(language[:MAX_LABEL], known_as(language)))
    written = language.lower()
    more = _MORE.get(written, "") if final else ""
    extension = _EXTENSIONS.get(written) or _EXTENSIONS.get(known_as(written) or "")
    attribute = f' data-file="{extension}"' if extension else ""
    return (
        f'<div class="code"{attribute}><div class="code-head"><span class="code-lang">{name}</span>{more}{_BUTTONS}'
        f'</div><pre tabindex="0">{CODE_START}{body}</code></pre></div>'
    )
