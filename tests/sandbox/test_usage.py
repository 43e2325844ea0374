"""The resources that a sandbox uses, and how its folder is created and removed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

from agents.sandbox.command import Sandbox
from agents.sandbox.folder import make_folder, remove_folder
from agents.sandbox.usage import FolderUsage, folder_usage, memory_of
from tests.support.sandboxes import bash, python

usage = partial(folder_usage, most_bytes=1_000_000, most_entries=1_000)
DEEP = "import os\nfor _ in range(%d): os.mkdir('d'); os.chdir('d')"


def test_a_folder_is_measured_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "text").write_bytes(b"x" * 8192)
    found = usage(tmp_path)
    assert found.entries == 2
    assert 8192 <= found.size <= 8192 + 3 * 4096


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "all").symlink_to("/")
    assert usage(tmp_path).entries == 2


def test_a_file_with_several_hard_links_is_measured_once(tmp_path: Path) -> None:
    """Package managers such as uv link files from their cache. A copy has each link as a file of its own."""
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    size = usage(tmp_path).size
    for name in ("a", "b"):
        (tmp_path / name).hardlink_to(tmp_path / "file")
    assert (usage(tmp_path).size, usage(tmp_path).entries) == (size, 3)
    assert usage(tmp_path, of_copy=True).size == 3 * size


def test_measuring_ends_at_the_limit(tmp_path: Path) -> None:
    for name in range(20):
        (tmp_path / str(name)).touch()
    assert folder_usage(tmp_path, most_bytes=1_000_000, most_entries=5).entries == 6


def test_measuring_ends_at_the_limit_of_links_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in range(20):
        (tmp_path / str(name)).hardlink_to(tmp_path / "file")
    assert folder_usage(tmp_path, most_bytes=1_000_000, most_entries=5).entries == 6


async def test_a_folder_that_is_nested_too_deeply_is_too_large(sandbox: Sandbox) -> None:
    """A folder with paths longer than the system allows counts as too large, because its files could not be
    measured."""
    await python(sandbox, DEEP % 1_200)
    assert usage(sandbox.workspace) == FolderUsage(1_000_001, 1_001, is_measured=False)


def test_memory_is_that_of_the_process_and_its_descendants() -> None:
    """The test uses processes of its own, because the memory of this one changes."""
    block = "block = b'x' * 20_000_000; print('made', flush=True); input()"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {block!r}])"
    for program in (block, child):
        with Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as process:
            assert process.stdout
            assert process.stdout.readline() == "made\n"
            assert memory_of(process.pid) >= 20_000_000
            process.communicate("\n")
    assert memory_of(process.pid) == 0


def test_a_folder_is_made_once_and_private(tmp_path: Path) -> None:
    folder = tmp_path / "workspaces" / "s_1"
    make_folder(folder)
    (folder / "kept").touch()
    make_folder(folder)
    assert [path.name for path in folder.iterdir()] == ["kept"]
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700


async def test_any_folder_can_be_removed(sandbox: Sandbox) -> None:
    """A folder is removed despite its depth and missing rights, and the removal follows no link."""
    outside = sandbox.workspace.parent / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (sandbox.workspace / "link").symlink_to(outside)
    await python(sandbox, DEEP % 1_200)
    await bash(sandbox, "mkdir -p closed/inner; touch closed/inner/file; chmod 000 closed/inner closed; mkfifo pipe")
    remove_folder(sandbox.workspace)
    assert not sandbox.workspace.exists()
    assert (outside / "kept").exists()


def test_a_folder_that_does_not_exist_is_removed(tmp_path: Path) -> None:
    remove_folder(tmp_path / "missing")
