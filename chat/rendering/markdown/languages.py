"""What a person calls the language of a code block."""

_NAMES = {
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


def label(written: str, known: str | None) -> str:
    """Name what was written behind the fence; `known` is the lexer's name for it, if there is one."""
    if written.lower() in _UNNAMED:
        return ""
    if known is None:
        return _NAMES.get(written.lower(), written)
    return _NAMES.get(written.lower()) or _NAMES.get(known, known.capitalize())
