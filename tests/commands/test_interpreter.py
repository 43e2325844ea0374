"""The Python with which `scripts/environment` creates the environment, chosen among stand-ins on PATH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands.process import ROOT

# A stand-in that answers the script's checks; `-m venv` writes its path in place of the environment's Python.
FAKE = """#!/bin/sh
case "$*" in
    *sysconfig*) exit $(({plain} | {newer})) ;;
    *"(3, 15)"*) exit {newer} ;;
    *ensurepip*) exit {unsuitable} ;;
    *venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "$0" >chosen ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/environment", tmp_path / "scripts")
    (tmp_path / "lock.txt").touch()
    return tmp_path


def add(folder: Path, name: str = "python3", *, plain: int = 0, unsuitable: int = 0, newer: int = 0) -> str:
    """Add a Python to a folder: compiled without optimization if `plain`, too old if `unsuitable`, or newer than
    Parley's packages if `newer`."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(FAKE.format(plain=plain, unsuitable=unsuitable, newer=newer))
    (folder / name).chmod(0o755)
    return str(folder / name)


def run(project: Path, *folders: str, **environ: str) -> subprocess.CompletedProcess[str]:
    programs = project / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("basename", "cmp", "cp", "dirname", "mkdir", "rm"):
        if not (programs / name).exists():
            (programs / name).symlink_to(shutil.which(name) or "")
    path = ":".join(str(project / folder) for folder in (*folders, "programs"))
    command = ["/bin/sh", str(project / "scripts/environment"), "lock.txt"]
    return subprocess.run(command, env={"PATH": path, **environ}, capture_output=True, text=True, check=False)


def chosen(project: Path) -> str:
    return (project / "chosen").read_text().strip()


def test_an_optimized_one_goes_before_a_plain_one(project: Path) -> None:
    add(project / "first", plain=1)
    add(project / "second", unsuitable=1)
    best = add(project / "third")
    assert run(project, "first", "second", "third").returncode == 0
    assert chosen(project) == best


def test_the_first_suitable_one_is_taken_if_none_is_optimized(project: Path) -> None:
    add(project / "first", unsuitable=1, plain=1)
    wanted = add(project / "second", plain=1)
    add(project / "third", plain=1)
    assert run(project, "first", "second", "third").returncode == 0
    assert chosen(project) == wanted


@pytest.mark.parametrize("plain", [0, 1])
def test_one_that_is_newer_than_the_packages_is_the_last_choice(project: Path, plain: int) -> None:
    """Packages without a file for a new Python must be compiled, so installing them fails without a compiler."""
    newest = add(project / "first", newer=1)
    wanted = add(project / "first", "python3.14", plain=plain)
    assert run(project, "first").returncode == 0
    assert chosen(project) == wanted
    shutil.rmtree(project / ".venv")
    Path(wanted).unlink()
    assert run(project, "first").returncode == 0
    assert chosen(project) == newest


def test_the_one_that_is_named_is_taken(project: Path) -> None:
    add(project / "first")
    wanted = add(project / "elsewhere", "python3.13", plain=1)
    assert run(project, "first", PYTHON=wanted).returncode == 0
    assert chosen(project) == wanted


def test_none_is_an_error_that_says_what_to_do(project: Path) -> None:
    old = add(project / "first", unsuitable=1)
    for environ in ({}, {"PYTHON": old}):
        refused = run(project, "first", **environ)
        assert refused.returncode == 1
        assert "needs Python 3.11 or newer" in refused.stderr
