"""Syntax highlighting of finished code blocks. It writes Pygments' tokens as few spans with short classes."""

import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from html import escape
from itertools import groupby
from threading import Event, Thread
from time import thread_time
from types import FrameType
from typing import NamedTuple

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String, _TokenType

from chat.rendering.budget import UNLIMITED, Allowance, Meter

# Lexers are regular expressions, and some take minutes for a page of empty lines, or forever for a few hundred
# characters. So only well-known languages, code of ordinary length and a limited time are allowed, and most languages
# only in another process. Lengths are in characters.
MAX_CODE = 24_000
MAX_LINE = 1_000
MAX_SECONDS = 0.25
# The CPU time for all code of one message. It is well below the limit of a process for rendering a message.
MAX_SECONDS_OF_TEXT = 0.5
# The timer ends a lexer again after this time if Python ignored the first exception, as in a destructor.
AGAIN_SECONDS = 0.05
# Less time than this is not worth a start.
MIN_SECONDS = 0.01
# The most characters of code that are highlighted in one message.
MAX_COLORED = 50_000
# The most languages that are highlighted in one message. Loading the lexer of a language takes 10 to 50 ms.
MAX_LANGUAGES = 12
_GAP = re.compile(r"\s{400}")

_LANGUAGES = frozenset(
    """ada apacheconf asm awk bash batch bibtex c clojure cmake cobol common-lisp cpp crystal csharp css cuda d dart
    delphi diff django docker elixir elm emacs-lisp erb erlang fish fortran fsharp gdscript glsl go graphql groovy
    haskell hcl hlsl html http ini java javascript jinja json json5 jsonnet jsx julia kotlin latex less lua make
    markdown matlab mysql nasm nginx nim nix objective-c ocaml pascal perl php postgresql powershell prolog
    properties protobuf puppet purescript pycon pytb python r racket rst ruby rust sass scala scheme scss solidity
    sql sqlite3 swift systemd tcl terraform toml tsql tsx typescript vbnet verilog vhdl vim vue wast xml yaml
    zig""".split()  # noqa: SIM905 - a hundred quoted words would be harder to read
)
# Languages whose lexers take at most quadratic time. A test computes that one match of an expression takes linear time,
# except for a few that are named there. Only these are highlighted in the server's process, where nothing can interrupt
# a regular expression.
QUICK = frozenset(
    """bash css diff go html java javascript json python rust sql toml typescript xml
    yaml""".split()  # noqa: SIM905  # as above
)
# Texts that start a rule of a quick lexer that is slow all the same.
SLOW_STARTS = {"bash": "$'"}
_ALIASES = {
    "bat": "batch",
    "c#": "csharp",
    "c++": "cpp",
    "cjs": "javascript",
    "cs": "csharp",
    "console": "bash",
    "dockerfile": "docker",
    "elisp": "emacs-lisp",
    "ex": "elixir",
    "f#": "fsharp",
    "golang": "go",
    "h": "c",
    "hpp": "cpp",
    "hs": "haskell",
    "htm": "html",
    "js": "javascript",
    "jsonc": "json5",
    "kt": "kotlin",
    "lisp": "common-lisp",
    "makefile": "make",
    "md": "markdown",
    "mjs": "javascript",
    "objc": "objective-c",
    "patch": "diff",
    "pl": "perl",
    "postgres": "postgresql",
    "proto": "protobuf",
    "ps1": "powershell",
    "py": "python",
    "python3": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "svg": "xml",
    "tex": "latex",
    "tf": "terraform",
    "ts": "typescript",
    "viml": "vim",
    "wat": "wast",
    "yml": "yaml",
    "zsh": "bash",
}
_DISPLAY_NAMES = {
    "apacheconf": "Apache",
    "asm": "Assembly",
    "awk": "AWK",
    "bash": "Bash",
    "bibtex": "BibTeX",
    "cmake": "CMake",
    "cobol": "COBOL",
    "common-lisp": "Common Lisp",
    "cpp": "C++",
    "csharp": "C#",
    "css": "CSS",
    "csv": "CSV",
    "cuda": "CUDA",
    "emacs-lisp": "Emacs Lisp",
    "erb": "ERB",
    "fsharp": "F#",
    "gdscript": "GDScript",
    "glsl": "GLSL",
    "graphql": "GraphQL",
    "hcl": "HCL",
    "hlsl": "HLSL",
    "html": "HTML",
    "http": "HTTP",
    "ini": "INI",
    "javascript": "JavaScript",
    "json": "JSON",
    "json5": "JSON5",
    "jsx": "JSX",
    "latex": "LaTeX",
    "matlab": "MATLAB",
    "mermaid": "Mermaid",
    "mysql": "MySQL",
    "nasm": "NASM",
    "objective-c": "Objective-C",
    "ocaml": "OCaml",
    "php": "PHP",
    "postgresql": "PostgreSQL",
    "powershell": "PowerShell",
    "protobuf": "Protocol Buffers",
    "purescript": "PureScript",
    "pycon": "Python",
    "pytb": "Python",
    "rst": "reStructuredText",
    "scss": "SCSS",
    "sql": "SQL",
    "sqlite3": "SQLite",
    "svg": "SVG",
    "toml": "TOML",
    "tsql": "T-SQL",
    "tsx": "TSX",
    "typescript": "TypeScript",
    "vbnet": "VB.NET",
    "verilog": "Verilog",
    "vhdl": "VHDL",
    "vim": "Vim",
    "wast": "WebAssembly",
    "xml": "XML",
    "yaml": "YAML",
}
_UNNAMED = {"", "text", "txt", "plain", "plaintext", "none"}
# A token gets the class of its nearest ancestor in this table. Other tokens get none, which keeps the HTML small.
_CLASSES: dict[_TokenType, str] = {
    Comment: "c",
    Comment.Preproc: "cp",
    Generic.Deleted: "gd",
    Generic.Emph: "ge",
    Generic.Error: "gr",
    Generic.Heading: "gh",
    Generic.Inserted: "gi",
    Generic.Output: "go",
    Generic.Prompt: "gp",
    Generic.Strong: "gs",
    Generic.Subheading: "gu",
    Generic.Traceback: "gr",
    Keyword: "k",
    Keyword.Constant: "kc",
    Keyword.Type: "kt",
    Literal: "l",
    Name.Attribute: "na",
    Name.Builtin: "nb",
    Name.Class: "nc",
    Name.Constant: "kc",
    Name.Decorator: "nd",
    Name.Exception: "nc",
    Name.Function: "nf",
    Name.Tag: "nt",
    Name.Variable: "nv",
    Number: "m",
    Operator.Word: "k",
    String: "s",
    String.Escape: "se",
    String.Interpol: "se",
    String.Regex: "sr",
}
CODE_CLASSES = frozenset(_CLASSES.values())
# The most common languages in answers.
COMMON = ("bash", "javascript", "json", "python")
# The languages whose lexers were requested on the event loop. The event is set when the lexer is loaded.
_loading: dict[str, Event] = {}


class Colored(NamedTuple):
    """The amount of code of a text that is highlighted: its characters and languages."""

    characters: int = 0
    languages: frozenset[str] = frozenset()


class Colors:
    """Counts the highlighted code of one text, and the `seconds` that are left for its lexers.

    `missing` is set if some code must be highlighted elsewhere, and `is_over` if some is too much for one text.
    """

    def __init__(self, allowance: Allowance = UNLIMITED, spent: Colored = Colored()) -> None:  # noqa: B008  # a value
        self._allowance = allowance
        self.spent = spent
        self.seconds = MAX_SECONDS_OF_TEXT
        self.missing = self.is_over = False

    def allow(self, code: str, language: str) -> bool:
        """Count code that can be highlighted, and return whether it is highlighted here."""
        if not self._allowance.colors:
            return False
        spent = Colored(self.spent.characters + len(code), self.spent.languages | {known_as(language) or ""})
        if spent.characters > MAX_COLORED or len(spent.languages) > MAX_LANGUAGES:
            self.is_over = True
            return False
        self.spent = spent
        allowance = self._allowance
        here = (
            len(code) <= allowance.colored
            and (allowance.slow_lexers or is_quick(code, language))
            and (allowance.loads_lexers or is_loaded(language))
        )
        self.missing |= not here
        return here


def known_as(language: str) -> str | None:
    """Return the name of the lexer for a language, or None if there is none."""
    name = _ALIASES.get(language.lower(), language.lower())
    return name if name in _LANGUAGES else None


def highlight(code: str, language: str, meter: Meter | None = None, colors: Colors | None = None) -> str | None:
    """Return the code as HTML with colored spans, or None if it stays plain. Raise BudgetExceeded."""
    name = known_as(language)
    if name is None or not is_colorable(code, language):
        return None
    pieces = _all_pieces(_lexer(name, name == "php" and "<?" not in code), code, meter, colors or Colors())
    if name == "diff":
        # Line ends get the class of their line, so that added and removed lines are marked over the whole width.
        before = ["", *(css for css, _ in pieces)]
        pieces = [(before[index] if text == "\n" else css, text) for index, (css, text) in enumerate(pieces)]
    # A lexer may stop early, or drop or change characters. Then the code stays plain.
    if "".join(text for _, text in pieces) != code:
        return None
    return "".join(_span(css, "".join(text for _, text in run)) for css, run in groupby(pieces, key=lambda p: p[0]))


def is_colorable(code: str, language: str) -> bool:
    """Return whether this is code of a known language and of ordinary length."""
    if known_as(language) is None or len(code) > MAX_CODE or _GAP.search(code):
        return False
    return all(len(line) <= MAX_LINE for line in code.split("\n"))


def is_quick(code: str, language: str) -> bool:
    """Return whether the lexer of a language takes at most quadratic time for this code."""
    name = known_as(language)
    return name in QUICK and (name not in SLOW_STARTS or SLOW_STARTS[name] not in code)


def is_loaded(language: str) -> bool:
    """Return whether the lexer of a language is loaded. If not, start to load it in a thread."""
    name = known_as(language)
    if name is None or name in _loading:
        return name is None or _loading[name].is_set()
    _loading[name] = Event()
    Thread(target=_load, args=(name,), name=f"lexer {name}", daemon=True).start()
    return False


def load_common() -> None:
    """Load the lexers of the most common languages, so that the first code block is highlighted immediately."""
    for name in COMMON:
        if name not in _loading:
            _loading[name] = Event()
            _load(name)


def _load(name: str) -> None:
    _lexer(name, inside_php=False)
    _loading[name].set()


@cache
def _lexer(name: str, inside_php: bool) -> Lexer:
    extra = {"startinline": True} if inside_php else {}
    return get_lexer_by_name(name, stripnl=False, ensurenl=False, **extra)


class _Interrupted(BaseException):  # not an Exception, which a lexer could catch
    """The timer of this process has ended."""


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    raise _Interrupted


def use_timer() -> None:
    """Let a timer interrupt slow lexers. Call this in the main thread of another process only."""
    signal.signal(signal.SIGVTALRM, _interrupt)


def _all_pieces(lexer: Lexer, code: str, meter: Meter | None, colors: Colors) -> list[tuple[str, str]]:
    """Return the pieces of the code, or only some of them if the lexer takes too long."""
    seconds, started = min(MAX_SECONDS, colors.seconds), thread_time()
    if seconds < MIN_SECONDS:
        return []
    pieces = _pieces(lexer, code, meter, seconds)
    try:
        return _until_interrupted(pieces, seconds) if _has_timer() else list(pieces)
    finally:
        colors.seconds -= thread_time() - started


def _until_interrupted(pieces: Iterator[tuple[str, str]], seconds: float) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    try:
        with suppress(_Interrupted):
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN_SECONDS)
            try:
                found += pieces
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:  # once more, because the signal can come just before the timer is stopped
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return found


def _has_timer() -> bool:
    return signal.getsignal(signal.SIGVTALRM) is _interrupt


def _pieces(lexer: Lexer, code: str, meter: Meter | None, seconds: float) -> Iterator[tuple[str, str]]:
    deadline = Meter(seconds)
    for kind, text in lexer.get_tokens(code):
        if meter is not None:
            meter.check()
        if deadline.is_over:
            return
        yield ("" if text.isspace() else _class(kind)), text


@cache
def _class(kind: _TokenType) -> str:
    for ancestor in reversed(kind.split()):
        if ancestor in _CLASSES:
            return _CLASSES[ancestor]
    return ""


def _span(css: str, text: str) -> str:
    safe = escape(text, quote=False)
    return f'<span class="{css}">{safe}</span>' if css else safe


def label(written: str, known: str | None) -> str:
    """Return the display name of the language `written` after a fence. `known` is the name of its lexer, if any."""
    if written.lower() in _UNNAMED:
        return ""
    if known is None:
        return _DISPLAY_NAMES.get(written.lower(), written)
    return _DISPLAY_NAMES.get(written.lower()) or _DISPLAY_NAMES.get(known, known.capitalize())
