"""Put the modules that a page's script imports into one file: forty small ones cost a third as much again.

No tool, no syntax tree: our modules are written alike (imports and exports begin their lines, no circles, no
`export let`). Each becomes a function that returns what it exports. A module that is written otherwise is not guessed
at: the page then gets its modules one by one, as with DEBUG.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import (?:(\{[^}]*\}|\* as \w+|\w+) from )?"(\.[^"]+)";\n', re.MULTILINE)
_LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b(?!\()|\bimport\.meta\b", re.MULTILINE)
# A function that is no module cannot wait; `for await` begins its line as well.
_WAITING = re.compile(r"^(?![^\n]*\basync\b)\S[^\n]*\bawait\b|^await\b", re.MULTILINE)
# Of `export const a = 1, b = 2` only the first would be seen.
_SEVERAL = re.compile(r"^export const \w+ = [^\n;({\[`]*, *\w+ = ", re.MULTILINE)


class CannotBundleError(Exception):
    """The text says which module is written in a way that is not known here."""


def folder_of(script: str) -> str:
    """Name the folder, beside js/, that holds a page's bundle: its modules import each other there as in js/."""
    return f"js-{posixpath.splitext(posixpath.basename(script))[0]}"


def bundle(script: str, files: Mapping[str, str]) -> dict[str, str]:
    """Make the content of a script's folder from the texts of all modules in js/, by their paths there.

    The script's own file has all that it imports; each of these has a file that passes on what is in there, for
    modules that are imported later. Each module is in a folder of js/. Raises CannotBundleError.
    """
    order = _order(script, files, [], ())
    vendored = sorted({path for name in order for _names, path in _IMPORT.findall(files[name]) if "/vendor/" in path})
    for name in order:
        _require_exports(name, files)
    head = [f'import * as $vendor{number} from "{path}";\n' for number, path in enumerate(vendored)]
    bodies = [_function(name, files[name], vendored, script) for name in order]
    made = {name: text for name, text in files.items() if name not in order}
    made |= {name: _passing_on(name, files[name], script) for name in order}
    made[script] = "".join([*head, "export const $modules = {};\n", *bodies])
    return made


def _order(name: str, files: Mapping[str, str], done: list[str], above: tuple[str, ...]) -> list[str]:
    """The modules in the order in which a browser runs them: what is imported comes first."""
    if name not in files:
        raise CannotBundleError(f"{name} is imported, but is not there")
    if name in above:
        raise CannotBundleError(f"{name} imports itself by way of {', '.join(above)}")
    for _names, path in _IMPORT.findall(files[name]):
        imported = _beside(name, path)
        if "/vendor/" not in path and imported not in done:
            _order(imported, files, done, (*above, name))
    done.append(name)
    return done


def _beside(name: str, path: str) -> str:
    """Return the path in js/ of what a module imports by a relative path."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _path_to(name: str, importer: str) -> str:
    """Return the relative path by which a module imports another."""
    path = posixpath.relpath(name, posixpath.dirname(importer))
    return path if path.startswith(".") else f"./{path}"


def _require_exports(name: str, files: Mapping[str, str]) -> None:
    """Find imported names that no module exports: a browser reports them, a bundle would define them as undefined."""
    for names, path in _IMPORT.findall(files[name]):
        if names.startswith("{") and "/vendor/" not in path:
            wanted = {part.split(" as ")[0].strip() for part in names.strip("{}").split(",")} - {""}
            if missing := wanted - set(_EXPORT.findall(files[_beside(name, path)])):
                raise CannotBundleError(f"{name} imports {', '.join(sorted(missing))}, which {path} does not export")


def _function(name: str, text: str, vendored: list[str], script: str) -> str:
    exported = _EXPORT.findall(text)
    # What is imported later is found from the script's folder.
    text = _LATER.sub(lambda later: f'import("{_path_to(_beside(name, later[1]), script)}")', text)
    imports = "".join(_taken(name, names, path, vendored) for names, path in _IMPORT.findall(text) if names)
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    if _LEFT.search(body) or _SEVERAL.search(text) or _WAITING.search(body):
        raise CannotBundleError(f"{name} imports, exports or waits in a way that is not known")
    return f'$modules["{name}"] = (() => {{\n{imports}{body}\nreturn {{ {", ".join(exported)} }};\n}})();\n'


def _taken(name: str, names: str, path: str, vendored: list[str]) -> str:
    """What was an import, as a constant."""
    is_vendored = "/vendor/" in path
    source = f"$vendor{vendored.index(path)}" if is_vendored else f'$modules["{_beside(name, path)}"]'
    if names.startswith("{"):
        return f"const {re.sub(r' as ', ': ', names)} = {source};\n"
    if names.startswith("*"):
        return f"const {names.removeprefix('* as ')} = {source};\n"
    return f"const {names} = {source}.default;\n"


def _passing_on(name: str, text: str, script: str) -> str:
    exported = ", ".join(_EXPORT.findall(text))
    return (
        f'import {{ $modules }} from "{_path_to(script, name)}";\nexport const {{ {exported} }} = $modules["{name}"];\n'
    )
