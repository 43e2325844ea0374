"""The instructions of docs/sandbox.md work."""

from __future__ import annotations

import re
from pathlib import Path

from agents.approval import Rules
from agents.config_file import read_config
from agents.messages import ToolCall
from agents.sandbox.command import ENVIRONMENT
from agents.toolbox import SANDBOX_TOOLS, TOOLBOX

TEXT = (Path(__file__).resolve().parents[2] / "docs/sandbox.md").read_text()


def test_the_configuration_gives_an_agent_all_tools(tmp_path: Path) -> None:
    examples = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "parley.toml"
    file.write_text("".join(examples))
    agent = read_config(file, {}).agents["coder"]
    assert {tool.name for tool in SANDBOX_TOOLS} < set(agent.tools) <= set(TOOLBOX)
    rules = Rules(allow=agent.approval.allow)
    verdicts = [
        rules.verdict(ToolCall("c", "bash", {"command": command}), needs_approval=True)
        for command in ("ls -la", "date")
    ]
    assert verdicts == ["run", "ask"]


def test_each_message_of_the_check_leads_to_its_solution() -> None:
    """With the restriction of Ubuntu 24.04, the first step that fails is the configuration of the network."""
    rows = [line.split("|")[1:3] for line in TEXT.splitlines() if line.startswith("| `")]
    solutions = {message: solution for messages, solution in rows for message in re.findall("`([^`]+)`", messages)}
    assert "apparmor_restrict_unprivileged_userns" in solutions["Failed RTM_NEWADDR"]
    assert "container" in solutions["No permissions to create new namespace"]
    assert "Operation not permitted" not in solutions


def test_all_variables_of_the_environment_are_named() -> None:
    [line] = [line for line in TEXT.splitlines() if line.startswith("| environment")]
    assert set(re.findall(r"`([A-Z]+)`", line)) == set(ENVIRONMENT)
