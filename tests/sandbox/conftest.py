"""A sandbox for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.sandbox import probe
from agents.sandbox.command import Sandbox
from agents.sandbox.folder import make_folder, remove_folder
from tests.support.sandboxes import LifeLine


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    assert probe.problem() == ""
    made = Sandbox(tmp_path / "data" / "workspaces" / "s_1")
    make_folder(made.workspace)
    yield made
    remove_folder(made.workspace)  # pytest cannot remove very deep folders


@pytest.fixture
def life_line(sandbox: Sandbox) -> Iterator[LifeLine]:
    made = LifeLine(sandbox.workspace)
    yield made
    os.close(made.descriptor)
