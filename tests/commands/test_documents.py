"""The documents are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import crossplane
import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from agents.registry import load
from chat.asgi import bodies
from tests.commands.process import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.yaml")])


def test_configuration_page_is_up_to_date() -> None:
    """The page would describe settings that do not exist, miss new ones, or show old defaults."""
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts/configuration", "--check"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")


def test_example_configuration_can_be_used(tmp_path: Path) -> None:
    example = "\n".join(re.findall(r"```toml\n(.*?)```", (ROOT / "docs/models.md").read_text(), re.DOTALL))
    file = tmp_path / "parley.toml"
    file.write_text(example)

    registry = load(file, {"CLAUDE_KEY": "key", "OPENAI_API_KEY": "key"})

    assert [registry.preset(name).name for name in ("assistant", "researcher")] == ["assistant", "researcher"]
    assert registry.context_window("workstation", "qwen3-32b") == 131072
    assert registry.preset().model == "claude-sonnet-5-5"


def test_commands_in_documents_exist_with_their_options() -> None:
    """OPS-07: who follows docs/deployment.md word by word gets no usage message."""
    named = re.compile(r"manage\.py ([a-z]+)([^`#\n]*)")
    found = {use for document in DOCUMENTS for use in named.findall(document.read_text())}
    wrong = set()
    for name, rest in found:
        if name not in get_commands():
            wrong.add(name)
            continue
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        known = {option for action in parser._actions for option in action.option_strings}
        wrong |= {f"{name} {option}" for option in re.findall(r"--[a-z-]+", rest) if option not in known}
    assert len(found) > 20
    assert wrong == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"(?<!!)\[[^\]]+\]\((?!https?:)([^)#]+)", document.read_text())

    assert [link for link in links if not (document.parent / link).exists()] == []


def test_proxy_examples_can_be_used_and_let_through_what_parley_takes(tmp_path: Path) -> None:
    """Too small a limit of the proxy's refuses what the settings allow, and its page explains nothing."""
    document = (ROOT / "docs/deployment.md").read_text()
    (example,) = re.findall(r"```nginx\n(.*?)```", document, re.DOTALL)
    file = tmp_path / "nginx.conf"
    file.write_text(f"events {{}}\nhttp {{\n{example}}}\n")

    parsed = crossplane.parse(str(file))

    assert (parsed["status"], parsed["errors"]) == ("ok", [])
    (caddy,) = re.findall(r"```caddy\n(.*?)```", document, re.DOTALL)
    largest = [settings.DATA_UPLOAD_MAX_MEMORY_SIZE, bodies.UPLOADS["import-file"]().size]
    sizes = [int(size) * 1024**2 for size in re.findall(r"client_max_body_size (\d+)m;", example)]
    assert [size >= most for size, most in zip(sizes, largest, strict=True)] == [True, True]
    sizes = [int(size) * 1000**2 for size in re.findall(r"max_size (\d+)MB", caddy)]
    assert [size >= most for size, most in zip(sizes, reversed(largest), strict=True)] == [True, True]
