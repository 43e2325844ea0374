"""Files of a workspace that Parley itself reads: nothing that a command creates leads outside or blocks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.sandbox import browsing
from agents.sandbox.browsing import MAX_ENTRIES, NotThere


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("outside")
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print(1)\n")
    (folder / "b.txt").write_text("b")
    (folder / "A.txt").write_text("a")
    return folder


def read(root: Path, path: str) -> bytes:
    return b"".join(browsing.open_file(root, path).pieces())


def walked(root: Path) -> set[str]:
    found = set()
    for file in browsing.walk(root):
        file.stream.close()
        found.add(file.entry.path)
    return found


def test_a_folder_is_listed_with_folders_first(root: Path) -> None:
    listing = browsing.list_folder(root)
    assert [(entry.name, entry.kind, entry.size) for entry in listing.entries if entry.kind == "file"] == [
        ("A.txt", "file", 1),
        ("b.txt", "file", 1),
    ]
    assert listing.entries[0].name == "src"
    [inner] = browsing.list_folder(root, "/src/./").entries
    assert inner.path == "src/main.py"
    assert read(root, "src/main.py") == b"print(1)\n"


@pytest.mark.parametrize(
    "path", ["../secret", "src/../../secret", "..", "src/..", "a\0b", "x" * 5_000, "a/" * 300, "x" * 300, "\ud800"]
)
def test_a_path_that_leads_out_is_not_there(root: Path, path: str) -> None:
    for function in (browsing.open_file, browsing.list_folder):
        with pytest.raises(NotThere):
            function(root, path)


def test_absolute_paths_are_below_the_workspace(root: Path) -> None:
    with pytest.raises(NotThere):
        browsing.open_file(root, str(root.parent / "secret"))
    assert read(root, "/b.txt") == b"b"


def test_links_are_shown_and_not_followed(root: Path) -> None:
    (root / "to-file").symlink_to(root.parent / "secret")
    (root / "to-folder").symlink_to(root.parent)
    (root / "src" / "up").symlink_to("..")
    kinds = {entry.name: entry.kind for entry in browsing.list_folder(root).entries}
    assert (kinds["to-file"], kinds["to-folder"]) == ("link", "link")
    for path in ("to-file", "to-folder/secret", "src/up/b.txt"):
        with pytest.raises(NotThere):
            browsing.open_file(root, path)
    for path in ("to-folder", "src/up"):
        with pytest.raises(NotThere):
            browsing.list_folder(root, path)
    assert walked(root) == {"A.txt", "b.txt", "src/main.py"}


def test_a_workspace_that_is_a_link_is_not_followed(root: Path) -> None:
    (root.parent / "other").symlink_to(root)
    with pytest.raises(NotThere):
        browsing.list_folder(root.parent / "other")


def test_pipes_and_sockets_neither_block_nor_open(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(NotThere):
        browsing.open_file(root, "pipe")
    assert {entry.name: entry.kind for entry in browsing.list_folder(root).entries}["pipe"] == "other"
    assert "pipe" not in walked(root)


def test_a_name_that_is_no_text_is_shown(root: Path) -> None:
    (Path(os.fsdecode(bytes(root) + b"/\xff.txt"))).touch()
    assert {entry.name: entry.kind for entry in browsing.list_folder(root).entries}["\ufffd.txt"] == "other"


def test_a_file_that_grows_is_read_to_where_it_ended(root: Path) -> None:
    """A download ends at the file's size at its start, even if a command never stops writing."""
    file = browsing.open_file(root, "b.txt")
    with (root / "b.txt").open("a") as more:
        more.write("more")
    assert b"".join(file.pieces()) == b"b"


def test_a_huge_folder_is_listed_in_part(root: Path) -> None:
    for number in range(MAX_ENTRIES + 5):
        (root / "src" / f"{number:05}").touch()
    listing = browsing.list_folder(root, "src")
    assert (len(listing.entries), listing.left_out) == (MAX_ENTRIES, 6)
    assert listing.entries[0].name == "00000"
    assert len(walked(root)) == MAX_ENTRIES + 8
