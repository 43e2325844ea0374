"""Checks of which paths of this machine are visible in a sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.sandbox.command import WORKSPACE, Sandbox
from agents.sandbox.process import system

# The sandbox's own folders: those with everything in them, and those that are empty at first.
OWN = (WORKSPACE, "/proc", "/dev")
EMPTY = ("/", "/run", "/tmp", "/var/tmp")  # noqa: S108  # compared


def hidden_paths(arguments: Sequence[str], sandbox: Sandbox) -> Iterator[str]:
    """Yield the paths in arguments (`/srv/data`, `--root=/srv/data`) that exist here, but not in the sandbox."""
    for argument in arguments:
        path = argument.partition("=")[2] if argument.startswith("-") else argument
        if path.startswith("/") and Path(path).exists() and not is_visible(path, sandbox):
            yield path


def is_visible(path: str, sandbox: Sandbox) -> bool:
    """Return whether a path is visible in the sandbox: it and the target of its links must be in shown folders."""
    found, shown = system(), Path(path).absolute()
    if str(shown) in EMPTY or any(shown.is_relative_to(folder) for folder in OWN):
        return True
    folders = [*found.paths, *(link for link, _target in found.links)]
    target = shown.resolve()
    is_hidden = any(target.is_relative_to(folder) for folder in sandbox.hidden)
    return not is_hidden and all(any(each.is_relative_to(it) for it in folders) for each in (shown, target))
