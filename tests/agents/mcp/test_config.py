"""The configuration of MCP servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.config_file import read_config
from agents.errors import ConfigError
from agents.mcp.config import ServerConfig, is_chosen, missing_variables, resolved, server_of


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "parley.toml"
    path.write_text(text)
    return path


def test_servers_are_read_with_the_tools_of_an_agent(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        """
        [mcp.files]
        command = ["npx", "server"]
        env = { TOKEN = "${FILES_TOKEN}" }
        [mcp.tickets]
        url = "https://tickets.example.com/mcp"
        headers = { Authorization = "Bearer ${TICKETS}" }
        approval = "never"
        [agents.helper]
        tools = ["calculator", "files__*", "tickets__find"]
        """,
    )
    read = read_config(path, {})
    assert read.agents["helper"].tools == ("calculator", "files__*", "tickets__find")
    assert read.mcp["files"].command == ("npx", "server")
    assert read.mcp["tickets"].approval == "never"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mcp.a]", "mcp.a: a server needs either a command or a url; set one of them"),
        (
            '[mcp.a]\nurl = "http://x/"\nnetwork = true',
            "mcp.a.network: only a server with a command can have it, and this one has a url; remove it",
        ),
        (
            '[mcp.a]\ncommand = ["x"]\nheaders = {}',
            "mcp.a.headers: only a server with a url can have it, and this one has a command",
        ),
        ('[mcp.a__b]\ncommand = ["x"]', "mcp.a__b: a server's name must have 1 to 24 letters and digits"),
        ('[mcp.a]\nurl = "http://me:secret@x/"', "mcp.a.url: must be a web address without a password"),
        ('[mcp.a]\ncommand = ["x"]\n[agents.h]\ntools = ["b__*"]', "agents.h.tools: there is no tool 'b__*'"),
    ],
)
def test_a_wrong_server_is_refused_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(config(tmp_path, text), {})
    assert words in str(refused.value)


def test_values_name_environment_variables() -> None:
    server = ServerConfig(url="http://x/", headers={"Authorization": "Bearer ${TOKEN}", "Plain": "$5"})
    assert resolved(server.headers, {"TOKEN": "abc"}) == {"Authorization": "Bearer abc", "Plain": "$5"}
    assert missing_variables(server, {}) == ["TOKEN"]
    assert missing_variables(server, {"TOKEN": "abc"}) == []


def test_tools_are_named_by_pattern() -> None:
    assert server_of("git-hub__find__all", ["git-hub"]) == "git-hub"
    assert server_of("calculator", ["git-hub"]) == ""
    assert is_chosen("a__find", ["calculator", "a__*"])
    assert not is_chosen("a__find", ["a__other"])
