"""Tools that an operator adds: Python files in a folder, and installed packages (docs/tools.md).

Both are code of the operator and run with the rights of Parley. An error in one of them is reported as a problem; the
other tools still work.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from agents.mcp.config import SEPARATOR
from agents.safe_text import cut, safe_text
from agents.toolbox import TOOLBOX
from agents.tools import TOOL_NAME, Tool

GROUP = "parley.tools"
# The package whose modules are the files of the folder, so that these can import each other.
PACKAGE = "parley_tools"
MAX_REASON_LENGTH = 500


@dataclass(frozen=True, slots=True)
class AddedTools:
    """The loaded tools by name. Each of `problems` names a file or package that was left out, and the reason."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


NO_ADDED_TOOLS = AddedTools()


def load_added_tools(folder: Path | None = None) -> AddedTools:
    """Load the tools of the folder's files and of the packages' entry points in the group `parley.tools`.

    Raise only KeyboardInterrupt. All other errors are in `problems`.
    """
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for place, load in (*_files(folder), *_packages()):
        try:
            found = _tools_of(load())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the operator's code may raise anything, even SystemExit
            problems.append(f"{place}: {_reason(error)}")
            continue
        if not found:
            problems.append(f"{place}: it defines no tool. Add @tool() to a function")
        for tool in found:
            if why := _refusal(tool, tools):
                problems.append(f"{place}: {why}")
            else:
                tools[tool.name] = tool
    return AddedTools(tools, tuple(problems))


def _files(folder: Path | None) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the path of each module in the folder, and a function that imports it.

    Modules whose name begins with `_` are helpers and are skipped.
    """
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    if folder is None:
        return
    if not os.path.isdir(folder):  # `Path.is_dir` raises if a parent cannot be read
        yield f"TOOLS_FOLDER={folder}", _raising(NotADirectoryError("the folder does not exist"))
        return
    importlib.invalidate_caches()
    package = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        if not module.name.startswith("_"):
            file = folder / (module.name if module.ispkg else f"{module.name}.py")
            yield str(file), partial(importlib.import_module, f"{PACKAGE}.{module.name}")


def _packages() -> Iterator[tuple[str, Callable[[], object]]]:
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        package = f" of {entry.dist.name}" if entry.dist else ""
        yield f"{entry.name} = {entry.value}{package}", entry.load


def _raising(error: Exception) -> Callable[[], object]:
    def load() -> object:
        raise error

    return load


def _tools_of(found: object) -> list[Tool]:
    """Return the tools that a module defines, or the tool or tools that an entry point names. Raise TypeError."""
    if isinstance(found, Tool):
        return [found]
    if isinstance(found, ModuleType):
        tools = [value for value in vars(found).values() if isinstance(value, Tool)]
        made = [
            tool for tool in tools if f"{getattr(tool.function, '__module__', '')}.".startswith(f"{found.__name__}.")
        ]
        return list({id(tool): tool for tool in made}.values())
    if isinstance(found, list | tuple) and all(isinstance(each, Tool) for each in found):
        return list(found)
    raise TypeError(f"a {type(found).__name__} is not a tool. Name a module, a tool or a list of tools")


def _refusal(tool: Tool, known: Mapping[str, Tool]) -> str:
    """Return the reason why a tool cannot be offered, or "" if it can."""
    if not isinstance(tool.name, str) or not TOOL_NAME.fullmatch(tool.name):
        return f"{safe_text(tool.name, 100)!r} is not a valid tool name. Use up to 64 letters, digits, _ and -"
    if tool.name in TOOLBOX:
        return f"Parley already has a tool named {tool.name}. Choose another name with @tool(name=…)"
    if tool.name in known:
        return f"another tool is already named {tool.name}. Choose another name with @tool(name=…)"
    if SEPARATOR in tool.name:
        return f"{tool.name}: a name with {SEPARATOR} is reserved for tools of MCP servers. Choose another name"
    try:
        json.dumps(tool.parameters)
    except (TypeError, ValueError) as error:
        return f"{tool.name}: its schema cannot be converted to JSON: {error}"
    return ""


def _reason(error: BaseException) -> str:
    """Describe an error with the line of the operator's code that raised it, if that line is known."""
    calls = [call for call in traceback.extract_tb(error.__traceback__) if call.filename != __file__]
    outside = [call for call in calls if "importlib" not in call.filename and "agents" not in Path(call.filename).parts]
    line = f" (line {outside[-1].lineno} of {outside[-1].filename})" if outside else ""
    return f"{type(error).__name__}: {safe_text(cut(str(error), MAX_REASON_LENGTH))}{line}"
