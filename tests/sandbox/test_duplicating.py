"""Copies of workspaces: complete or absent, with the same files and nothing from outside."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.sandbox import duplicating
from agents.sandbox.browsing import MAX_DEPTH
from agents.sandbox.command import MB, Limits
from agents.sandbox.duplicating import Copied, DiskFull, TooLarge, duplicate


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("outside")
    folder = tmp_path / "s_1"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print(1)\n")
    (folder / "数据.txt").write_text("b")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "s_2"


def copy(source: Path, target: Path, seconds: float = 60, limits: Limits | None = None) -> Copied:
    return duplicate(source, target, limits=limits or Limits(), seconds=seconds)


def found_in(folder: Path) -> dict[str, bytes | str]:
    """Return the content of files, and the targets of links, by path."""
    entries = [entry for entry in folder.rglob("*") if entry.is_symlink() or not entry.is_dir()]
    return {
        str(entry.relative_to(folder)): os.readlink(entry) if entry.is_symlink() else entry.read_bytes()
        for entry in entries
    }


def test_a_copy_has_the_files_with_times_and_permissions(source: Path, target: Path) -> None:
    script = source / "src" / "run.sh"
    script.write_bytes(b"\0" * 10)
    script.chmod(0o4751)
    (source / "empty").mkdir()
    for path in (script, source / "src"):
        os.utime(path, (1_000_000, 1_000_000))
    assert copy(source, target) == Copied(entries=5, size=20)
    assert found_in(target) == found_in(source)
    assert (target / "empty").is_dir()
    assert stat.S_IMODE((target / "src" / "run.sh").stat().st_mode) == 0o751
    assert [(target / path).stat().st_mtime for path in ("src", "src/run.sh")] == [1_000_000, 1_000_000]
    assert stat.S_IMODE(target.stat().st_mode) == 0o700


def test_leftovers_of_a_copy_are_replaced(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "half").touch()
    copy(source, target)
    assert found_in(target) == found_in(source)


def test_the_copy_is_independent(source: Path, target: Path) -> None:
    os.link(source / "数据.txt", source / "same")
    copy(source, target)
    (target / "same").write_text("changed")
    (target / "src" / "main.py").unlink()
    assert (source / "数据.txt").read_text() == (target / "数据.txt").read_text() == "b"
    assert (source / "src" / "main.py").exists()


def test_links_stay_links(source: Path, target: Path) -> None:
    """Links are copied as links with the same targets. The files outside are not copied, and relative links lead to the
    copy's own files."""
    (source / "out").symlink_to(source.parent / "secret")
    (source / "folder").symlink_to("/etc")
    (source / "src" / "up").symlink_to("../数据.txt")
    (source / "broken").symlink_to("nothing")
    copy(source, target)
    links = {name: value for name, value in found_in(target).items() if isinstance(value, str)}
    assert links == {
        "out": str(source.parent / "secret"),
        "folder": "/etc",
        "src/up": "../数据.txt",
        "broken": "nothing",
    }


def test_what_is_no_file_is_left_out(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes do not block, and names that no address can have are not copied."""
    os.mkfifo(source / "pipe")
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    Path(os.fsdecode(bytes(source) + b"/\xff.txt")).touch()
    assert copy(source, target).left_out == 3
    assert set(found_in(target)) == {"src/main.py", "数据.txt"}


def test_what_cannot_be_read_is_left_out(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable files are simulated by a replacement of `os.open`, because root, which may run the tests, reads every
    file."""
    (source / "closed").write_text("x")
    (source / "shut").mkdir()
    (source / "shut" / "inner").write_text("x")
    real = os.open

    def refusing(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if path in ("closed", "shut") and os.path.samestat(os.stat(options["dir_fd"]), os.stat(source)):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refusing)
    assert copy(source, target).left_out == 2
    assert not (target / "closed").exists()


def test_folders_that_are_read_only_are_filled(source: Path, target: Path) -> None:
    (source / "src").chmod(0o555)
    copy(source, target)
    assert (target / "src" / "main.py").read_text() == "print(1)\n"
    assert stat.S_IMODE((target / "src").stat().st_mode) == 0o555
    for folder in (source, target):
        (folder / "src").chmod(0o755)


def test_copies_of_attachments_and_drafts_are_not_copied(source: Path, target: Path) -> None:
    """Attachments come from the fork's own messages. Other files in their folder belong to the agent and are copied."""
    (source / "attachments").mkdir()
    for name in ("attachments/a.pdf", "b.parley-draft"):
        (source / name).write_text("x")
        (source / name).chmod(0o444)
    assert copy(source, target) == Copied(entries=3, size=10)
    assert not (target / "attachments").exists()
    (source / "attachments" / "own.txt").write_text("x")
    copy(source, target.with_name("s_3"))
    assert os.listdir(target.with_name("s_3") / "attachments") == ["own.txt"]


@pytest.mark.parametrize("only", ["nothing", "attachments"])
def test_nothing_to_copy_makes_no_folder(tmp_path: Path, target: Path, only: str) -> None:
    (tmp_path / "s_9" / "attachments").mkdir(parents=True)
    if only == "attachments":
        (tmp_path / "s_9" / "attachments" / "a").touch()
        (tmp_path / "s_9" / "attachments" / "a").chmod(0o444)  # `touch` would reduce the mode by the umask
    assert copy(tmp_path / "s_9", target) == Copied()
    assert not target.exists()


def test_holes_stay_holes(source: Path, target: Path) -> None:
    """Sparse files stay sparse and take neither time nor disk space."""
    for number in range(20):
        with (source / f"sparse-{number}").open("wb") as file:
            file.truncate(500 * MB)
            file.seek(200 * MB)
            file.write(b"middle")
    copied = copy(source, target)
    assert copied.size < MB
    made = (target / "sparse-7").stat()
    assert (made.st_size, made.st_blocks * 512 < MB) == (500 * MB, True)
    with (target / "sparse-7").open("rb") as file:
        file.seek(200 * MB)
        assert file.read(7) == b"middle\0"


def test_file_systems_that_cannot_copy_ranges_are_read(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_values: object) -> int:
        raise OSError(errno.EXDEV, "other disk")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(duplicating, "PIECE", 3)
    copy(source, target)
    assert found_in(target) == found_in(source)


@pytest.mark.parametrize(
    ("limits", "seconds"), [(Limits(workspace_mb=0), 60.0), (Limits(workspace_files=1), 60.0), (Limits(), -1.0)]
)
def test_too_much_leaves_nothing(source: Path, target: Path, limits: Limits, seconds: float) -> None:
    """A copy beyond a limit of size, number or time leaves nothing, because a part would look complete."""
    with pytest.raises(TooLarge):
        copy(source, target, seconds, limits)
    assert not target.exists()


def test_deep_folders_are_too_much(source: Path, target: Path) -> None:
    deep = source
    for _ in range(MAX_DEPTH + 2):
        deep = deep / "d"
        deep.mkdir()
    with pytest.raises(TooLarge):
        copy(source, target)
    assert not target.exists()


def test_full_disk_leaves_nothing(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_values: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    for where, name, act in ((os, "copy_file_range", full), (duplicating, "is_disk_full", lambda _folder: True)):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, act)
            with pytest.raises(DiskFull):
                copy(source, target)
        assert not target.exists()


Act = Callable[[Path], object]


def _replace(source: Path) -> None:
    (source / "src").rename(source.parent / "moved")
    (source / "src").symlink_to(source.parent / "elsewhere")


def _shorten(source: Path) -> None:
    (source / "src" / "main.py").write_text("")


def _lengthen(source: Path) -> None:
    (source / "src" / "main.py").write_text("print(1)\nmore")


@pytest.mark.parametrize(
    ("act", "has"),
    [(_replace, None), (_shorten, b""), (_lengthen, b"print(1)\n")],
    ids=["replaced", "shorter", "longer"],
)
def test_changes_during_the_copy_lead_nowhere(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, act: Act, has: bytes | None
) -> None:
    """A folder that a command replaces by a link is not followed, and a growing file is copied up to its first size."""
    (source.parent / "elsewhere").mkdir()
    (source.parent / "elsewhere" / "main.py").write_text("outside")
    name = "open_folder" if act is _replace else "_parts_with_data"
    real, acts = getattr(duplicating, name), [act]

    def after(*values: object) -> object:
        is_time = values[-1] == "src" if act is _replace else os.readlink(f"/proc/self/fd/{values[0]}").endswith(".py")
        if is_time and acts:
            acts.pop()(source)
        return real(*values)

    monkeypatch.setattr(duplicating, name, after)
    copied = copy(source, target)
    assert not acts
    made = target / "src" / "main.py"
    assert (made.read_bytes() if made.exists() else None) == has
    assert copied.left_out == (1 if has is None else 0)
