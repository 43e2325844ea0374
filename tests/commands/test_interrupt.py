"""Ctrl-C in a command."""

from __future__ import annotations

from pathlib import Path

from tests.commands.process import manage


def test_interrupted_command_ends_without_a_traceback(tmp_path: Path) -> None:
    """OPS-06: the exit code is that of shells for SIGINT, and what the command itself reports is not buried."""
    ended = manage("shell", "-v0", "-c", "raise KeyboardInterrupt", data=tmp_path / "data", SECRET_KEY="k" * 50)
    assert (ended.returncode, ended.stderr) == (130, "")
