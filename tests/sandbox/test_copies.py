"""Copies of files in a workspace, which commands can read but not change, remove or replace."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agents.sandbox import process
from agents.sandbox.command import Sandbox, System
from agents.sandbox.copies import Copy, remove_copies, update_copies
from agents.sandbox.process import Ended
from tests.support.sandboxes import bash

PLACE = "attachments"


def copy(name: str, data: bytes | None, changed: int = 1_000) -> Copy:
    return Copy(name, len(data or b""), changed, lambda: data)


async def test_commands_read_copies_and_cannot_change_them(sandbox: Sandbox) -> None:
    update_copies(sandbox.workspace, PLACE, [copy("a b.txt", b"first\n")])
    protected = replace(sandbox, copies=PLACE)
    said = await bash(
        protected,
        "cat 'attachments/a b.txt'; cd attachments; echo x > new; echo x > 'a b.txt'; rm -f 'a b.txt'; "
        "chmod 777 'a b.txt'; cd ..; mv attachments other; rm -rf attachments; ln -sfn /etc attachments; echo ok > own",
    )
    assert said.output.startswith("first\n")
    assert said.output.count("Read-only file system") >= 4
    assert {path.name for path in (sandbox.workspace / PLACE).iterdir()} == {"a b.txt"}
    assert (sandbox.workspace / PLACE / "a b.txt").read_bytes() == b"first\n"
    assert (sandbox.workspace / "own").read_text() == "ok\n"


async def test_the_folder_is_made_before_a_command_can_make_it(sandbox: Sandbox) -> None:
    protected = replace(sandbox, copies=PLACE)
    for command in ("ln -s . attachments/b", "mv attachments c", "echo x > attachments/b"):
        assert (await bash(protected, command)).ended == Ended("exit", 1)
    assert [path.name for path in sandbox.workspace.rglob("*")] == [PLACE]


async def test_a_link_in_place_of_the_folder_is_renamed(sandbox: Sandbox) -> None:
    """No command runs while a link is in place of the folder, and nothing is copied to where the link leads."""
    (sandbox.workspace / PLACE).symlink_to(sandbox.workspace.parent)
    protected = replace(sandbox, copies=PLACE)
    with pytest.raises(NotADirectoryError):
        await bash(protected, "ls attachments/")
    update_copies(sandbox.workspace, PLACE, [copy("a", b"a")])
    assert (await bash(protected, "ls attachments; readlink attachments-2")).output.startswith("a\n/")
    assert not (sandbox.workspace.parent / "a").exists()


async def test_a_folder_that_is_replaced_after_the_check_is_not_shown(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that another command replaces after the check is not shown.

    A hanging worker that has lost the session may still run such a command beside the next worker's.
    """
    folder = sandbox.workspace / PLACE
    update_copies(sandbox.workspace, PLACE, [copy("a", b"first\n")])
    protected = replace(sandbox, copies=PLACE)
    found = process.system()

    def replaced() -> System:
        folder.rename(sandbox.workspace / "other")
        folder.mkdir()
        (folder / "a").write_text("another folder")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(process, "system", replaced)
        said = await bash(protected, "cat attachments/a")
    assert said == (Ended("exit", 126), "/workspace/attachments has been replaced\n")
    assert (await bash(protected, "cat attachments/a")).output == "another folder"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_copies_follow_their_files(sandbox: Sandbox) -> None:
    folder = sandbox.workspace / PLACE
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("b", b"b"), copy("lost", None)])
    kept = (folder / "a").stat().st_ino
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("c", b"c"), copy("b", b"2", changed=2_000)])
    assert contents(folder) == {"a": b"one", "b": b"2", "c": b"c"}
    assert (folder / "a").stat().st_ino == kept
    update_copies(sandbox.workspace, PLACE, [])
    assert contents(folder) == {}


def test_a_copy_that_was_not_finished_is_written_again(sandbox: Sandbox) -> None:
    """It stays in the folder after a crash, with the permissions that the umask has left."""
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one")])
    unfinished = sandbox.workspace / PLACE / "copy.parley-draft"
    unfinished.touch(0o440)
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("b", b"two")])
    assert contents(sandbox.workspace / PLACE) == {"a": b"one", "b": b"two"}
    assert [path.name for path in sandbox.workspace.iterdir()] == [PLACE]


def test_copies_of_removed_files_go_and_others_stay(sandbox: Sandbox) -> None:
    """A turn that runs uses the others."""
    folder = sandbox.workspace / PLACE
    remove_copies(sandbox.workspace, PLACE, {(3, 1_000)})
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("b", b"two", changed=2_000), copy("c", b"three")])
    (folder / "own").write_bytes(b"one")
    remove_copies(sandbox.workspace, PLACE, {(3, 1_000)})
    assert contents(folder) == {"b": b"two", "c": b"three", "own": b"one"}


def test_copies_that_another_thread_has_just_removed_are_no_error(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user removes a message while a turn of another message begins."""
    update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("b", b"two")])
    listed = os.listdir

    def names(place: int) -> list[str]:
        return [*listed(place), "gone"]

    monkeypatch.setattr(os, "listdir", names)
    remove_copies(sandbox.workspace, PLACE, {(3, 1_000)})
    update_copies(sandbox.workspace, PLACE, [copy("b", b"two")])
    monkeypatch.undo()
    assert contents(sandbox.workspace / PLACE) == {"b": b"two"}


def test_what_is_no_copy_is_moved_out_of_the_folder(sandbox: Sandbox) -> None:
    """UI-15: addresses in attachments count as those of users, so nothing that a command has made may be among them."""
    folder = sandbox.workspace / PLACE
    for number in (2, 3):
        update_copies(sandbox.workspace, PLACE, [copy("a", b"one")])
        (folder / "own").write_bytes(b"made by a command")
        (folder / "link").symlink_to("own")
        folder.chmod(0o555)
        update_copies(sandbox.workspace, PLACE, [copy("a", b"one"), copy("own", b"theirs")])
        assert contents(folder) == {"a": b"one", "own": b"theirs"}
        aside = sandbox.workspace / f"{PLACE}-{number}"
        assert contents(aside) == {"own": b"made by a command", "link": b"made by a command"}
