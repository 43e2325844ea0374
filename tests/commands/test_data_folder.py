"""The data folder is private, and its key is complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat.security.web_push import check_private_key
from config.data_folder import make_private, secret_key, vapid_key


@pytest.fixture(autouse=True)
def _own_umask() -> Iterator[None]:
    """The process's umask, restored after a test, because making the folder private changes it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_others_could_read_is_taken_away_from_them(tmp_path: Path) -> None:
    """The permissions of others are removed from the database and the files. Folders hide everything below them."""
    tmp_path.chmod(0o755)
    elsewhere = tmp_path.with_name("elsewhere.sqlite3")
    for path in (tmp_path / "parley.sqlite3", elsewhere):
        path.write_text("rows")
        path.chmod(0o664)
    (tmp_path / "files").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("/etc/hostname")

    assert make_private(tmp_path, elsewhere, tmp_path / "gone") == []

    assert [mode(path) for path in (tmp_path, tmp_path / "files", tmp_path / "parley.sqlite3", elsewhere)] == [
        0o700,
        0o700,
        0o600,
        0o600,
    ]
    assert mode(Path("/etc/hostname")) & 0o044
    (tmp_path / "new").write_text("rows")
    assert mode(tmp_path / "new") == 0o600


def test_what_is_not_parley_s_keeps_its_permissions(tmp_path: Path) -> None:
    """A start in a folder that others use, such as /srv, does not take their files away from them."""
    tmp_path.chmod(0o755)
    for name in ("www", "files"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "parley.sqlite3-wal").touch(0o644)
    (tmp_path / "private").mkdir(mode=0o700)

    (message,) = make_private(tmp_path)
    assert message.startswith(f"{tmp_path}: www is not Parley's, and other accounts can use it. Set PARLEY_DATA to a ")

    modes = [mode(path) for path in (tmp_path, tmp_path / "www", tmp_path / "files", tmp_path / "parley.sqlite3-wal")]
    assert modes == [0o755, 0o755, 0o700, 0o600]
    (tmp_path / "www").rmdir()
    assert make_private(tmp_path) == []
    assert mode(tmp_path) == 0o700


def test_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"

    key = secret_key(data)

    assert len(key) > 60
    assert secret_key(data) == key
    assert (mode(data), mode(data / "secret_key")) == (0o700, 0o600)
    assert [path.name for path in data.iterdir()] == ["secret_key"]


def test_key_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is synced before it is renamed, so a power cut leaves the whole key or none, and a used key is still
    there."""
    fsync, link = os.fsync, os.link
    synced: list[tuple[int, int]] = []

    def sync(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, os.fstat(handle).st_size))
        fsync(handle)

    def name(source: Path, target: Path) -> None:
        assert (source.stat().st_ino, source.stat().st_size) in synced
        link(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", name)

    assert secret_key(tmp_path)
    assert synced[-1][0] == tmp_path.stat().st_ino


def test_key_of_another_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two first starts at the same time use one key."""
    other = "k" * 60
    link = os.link

    def later(source: Path, target: Path) -> None:
        target.write_text(other)
        link(source, target)

    monkeypatch.setattr(os, "link", later)

    assert secret_key(tmp_path) == other
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


@pytest.mark.parametrize("content", [b"", b"\n", b"abc", b"\xff" * 100])
def test_key_that_is_none_is_refused_with_its_remedy(tmp_path: Path, content: bytes) -> None:
    """An invalid key, such as an empty one after a power cut, is refused with its remedy."""
    (tmp_path / "secret_key").write_bytes(content)

    with pytest.raises(SystemExit, match=r"secret_key has no usable key. Restore it from a backup, or delete it"):
        secret_key(tmp_path)


def test_key_of_push_messages_is_made_in_the_same_way(tmp_path: Path) -> None:
    """UI-22: the key is generated once, is private to its owner, and can sign."""
    key = vapid_key(tmp_path)

    check_private_key(key)
    assert vapid_key(tmp_path) == key != vapid_key(tmp_path / "other")
    assert mode(tmp_path / "vapid_key") == 0o600
    (tmp_path / "vapid_key").write_text("short")
    with pytest.raises(SystemExit, match=r"vapid_key has no usable key.*turn on notifications again"):
        vapid_key(tmp_path)
