"""Tools that an operator adds: the examples of docs/tools.md work, and broken tools are reported and left out."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.added_tools import load_added_tools
from agents.errors import ConfigError
from agents.events import ToolWaiting
from agents.loop import before_running
from agents.messages import Json, ToolCall
from agents.registry import load

TEXT = (Path(__file__).resolve().parents[2] / "docs/tools.md").read_text().partition("## Tools of your own")[2]
EXAMPLES = re.findall(r"```(?:python|toml)\n(.*?)```", TEXT.partition("\n## ")[0], re.DOTALL)
GOOD = 'from agents.tools import tool\n@tool()\ndef good() -> str:\n    """Work."""\n    return "done"\n'

Install = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    """A cleanup that removes the modules that a test has imported."""
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("parley_tools", "acme_tools"):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path / "tools"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that installs acme_tools.py with the files that an installer writes."""

    def write(project: str, source: str) -> None:
        described = tomllib.loads(project)["project"]
        site = tmp_path / "site"
        information = site / "acme_tools-1.0.dist-info"
        information.mkdir(parents=True)
        (site / "acme_tools.py").write_text(source)
        about = f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n"
        (information / "METADATA").write_text(about)
        groups = described["entry-points"].items()
        entries = "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items()) for group, named in groups
        )
        (information / "entry_points.txt").write_text(entries)
        monkeypatch.syspath_prepend(str(site))

    return write


async def test_the_examples_of_the_document_work(folder: Path, install: Install, tmp_path: Path) -> None:
    """RUN-11, UI-15: an agent has both tools of the examples.

    One needs an approval, and the other's result is marked.
    """
    in_folder, in_package, project = EXAMPLES
    assert sum(len(example.splitlines()) for example in EXAMPLES) <= 30
    (folder / "rooms.py").write_text(in_folder)
    install(project, in_package)
    [named] = re.findall(r"`(tools = \[.*?\])`", TEXT)
    config = tmp_path / "parley.toml"
    config.write_text(f'[providers.demo]\ntype = "demo"\n[agents.host]\n{named}\n')
    added = load_added_tools(folder)
    assert added.problems == ()
    registry = load(config, {}, None, added)
    agent = registry.build_agent(registry.preset("host"))
    book, ticket = agent.tools
    assert (book.name, ticket.name) == ("book_room", "ticket")
    assert book.parameters["properties"]["room"]["description"] == "A, B or C"
    call = ToolCall("c1", "book_room", {"room": "B"})
    waits = before_running(book, call, agent.rules)
    assert isinstance(waits, ToolWaiting)
    assert waits.kind == "approval"
    assert before_running(ticket, ToolCall("c2", "ticket", {"number": 7}), agent.rules) is None
    assert (await book.run(call)).content == "Room B is booked for 1 h."
    failed = await book.run(ToolCall("c3", "book_room", {"room": "D"}))
    assert (failed.is_error, failed.content) == (True, "There is no room D. Choose A, B or C.")
    read = await ticket.run(ToolCall("c4", "ticket", {"number": 7}))
    assert (read.origin, "flickers" in read.content) == ("ticket", True)
    assert {"book_room", "ticket"} < set(registry.tool_names())
    assert registry.tool("ticket") is ticket


def test_tools_of_a_neighbor_are_its_own(folder: Path) -> None:
    """A tool that one file imports from another is offered once, even if one file's name begins with the other's."""
    (folder / "ab.py").write_text(GOOD)
    source = GOOD.replace("good", "better").replace("from agents", "from parley_tools.ab import good\nfrom agents", 1)
    (folder / "a.py").write_text(source)
    added = load_added_tools(folder)
    assert (list(added.tools), added.problems) == (["better", "good"], ())


BROKEN = {
    "not_python.py": ("def f(:\n", "SyntaxError"),
    "raises.py": (
        "x = 1\nraise RuntimeError('No connection')\n",
        r"RuntimeError: No connection \(line 2 of .*raises.py\)",
    ),
    "exits.py": ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    "misses.py": ("import no_such_module\n", "ModuleNotFoundError.*no_such_module"),
    "undocumented.py": (
        "from agents.tools import tool\n@tool()\ndef f() -> str:\n    return ''\n",
        "TypeError: .*docstring",
    ),
    "empty.py": ("from agents.toolbox import calculator\n", "it defines no tool"),
    "theirs.py": (GOOD.replace("good", "calculator"), "Parley already has a tool named calculator"),
    "twice.py": (GOOD, "another tool is already named good"),
    "server.py": (
        GOOD.replace("good", "files__read"),
        "files__read: a name with __ is reserved for tools of MCP servers",
    ),
    "schema.py": (
        f"{GOOD}from dataclasses import replace\ngood = replace(good, name='other', parameters={{'x': object()}})\n",
        "other: its schema cannot be converted to JSON",
    ),
    "named.py": (
        f"{GOOD}from dataclasses import replace\ngood = replace(good, name='a b')\n",
        "'a b' is not a valid tool name",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_left_out_with_its_reason(folder: Path, name: str) -> None:
    source, reason = BROKEN[name]
    (folder / "a_good.py").write_text(GOOD)
    (folder / name).write_text(source)
    added = load_added_tools(folder)
    assert list(added.tools) == ["good"]
    [problem] = added.problems
    assert problem.startswith(f"{folder / name}: ")
    assert re.search(reason, problem), problem


def test_files_share_helpers(folder: Path) -> None:
    """A name that begins with `_` is not a tool, and a folder is a package."""
    (folder / "_words.py").write_text("WORD = 'shared'\n")
    (folder / "one.py").write_text(f"from parley_tools._words import WORD\n{GOOD}")
    (folder / "many").mkdir()
    (folder / "many/__init__.py").write_text("from .parts import other\nfrom .. import _words\n")
    (folder / "many/parts.py").write_text(GOOD.replace("good", "other"))
    added = load_added_tools(folder)
    assert (sorted(added.tools), added.problems) == (["good", "other"], ())


def test_a_broken_package_is_left_out(install: Install, folder: Path) -> None:
    project = EXAMPLES[2].replace('"acme_tools"', '"acme_tools:missing"') + 'more = "acme_tools:number"\n'
    install(project, "number = 7\n")
    (folder / "good.py").write_text(GOOD)
    added = load_added_tools(folder)
    assert list(added.tools) == ["good"]
    first, second = added.problems
    assert re.search(r"acme = acme_tools:missing of acme-tools: AttributeError", first)
    assert "more = acme_tools:number of acme-tools: TypeError: a int is not a tool" in second


def test_a_folder_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    [problem] = load_added_tools(tmp_path / "gone").problems
    assert "the folder does not exist" in problem


def test_an_agent_may_name_a_tool_that_could_not_be_loaded(folder: Path, tmp_path: Path) -> None:
    """Parley starts, and an agent that names the broken tool has only its other tools.

    An unknown tool without such a problem is a configuration error.
    """
    config = tmp_path / "parley.toml"
    config.write_text('[providers.demo]\ntype = "demo"\n[agents.host]\ntools = ["good", "calculator"]\n')
    (folder / "good.py").write_text("import no_such_module\n")
    registry = load(config, {}, None, load_added_tools(folder))
    assert [tool.name for tool in registry.build_agent(registry.preset("host")).tools] == ["calculator"]
    (folder / "good.py").write_text(GOOD.replace("good", "wood"))
    with pytest.raises(ConfigError, match=r"there is no tool 'good'; choose from .*wood"):
        load(config, {}, None, load_added_tools(folder))


async def test_a_tool_that_breaks_does_not_break_the_turn(folder: Path) -> None:
    """RUN-11: a tool that raises any exception, or returns any object, still gives a result."""
    calls: dict[str, Json] = {"raises": {}, "returns": {}, "leaves": {}}
    bodies = {"raises": "raise RuntimeError('x')", "returns": "return object()", "leaves": "raise SystemExit"}
    for name, body in bodies.items():
        source = GOOD.replace("good", name).replace('return "done"', body)
        (folder / f"{name}.py").write_text(source)
    tools = load_added_tools(folder).tools
    results = {name: await tools[name].run(ToolCall("c", name, arguments)) for name, arguments in calls.items()}
    assert [results[name].is_error for name in ("raises", "leaves", "returns")] == [True, True, False]
