"""Attached files as messages show them."""

from __future__ import annotations

from bs4 import BeautifulSoup
from django.template.loader import render_to_string

from chat.rendering.messages.attachments import split_files
from chat.snapshots import AttachmentSnapshot


def file(name: str, kind: str = "text", width: int | None = None, height: int | None = None) -> AttachmentSnapshot:
    return AttachmentSnapshot(f"a_{name[0]}", name, kind, "x/y", 1536, width, height, 12 if kind == "pdf" else None)


def drawn(*files: AttachmentSnapshot) -> BeautifulSoup:
    html = render_to_string("chat/messages/attachments.html", {"message": {"attachments": files}})
    return BeautifulSoup(html, "html.parser")


def test_a_picture_has_its_size_before_it_loads() -> None:
    """UI-01: the page does not jump; small images are not enlarged."""
    shown = split_files([file("a", "image", 4000, 3000), file("b", "image", 90, 60), file("c", "image", 1, 9000)])
    assert [(one.width, one.height) for one in shown.pictures] == [(360, 270), (90, 60), (1, 320)]
    image = drawn(file("a.png", "image", 4000, 3000)).find("img")
    assert image is not None
    assert (image["width"], image["height"], image["alt"]) == ("360", "270", "a.png")


def test_of_a_long_name_the_ending_stays() -> None:
    """A file name is split before its extension, so that shortening keeps the extension (UI-01)."""
    names = ("report.final.pdf", "Makefile", ".gitignore", "a.this-is-no-ending", "日本.txt")
    split = [(one.stem, one.ending) for one in split_files(map(file, names)).documents]
    assert split == [
        ("report.final", ".pdf"), ("Makefile", ""), (".gitignore", ""), ("a.this-is-no-ending", ""), ("日本", ".txt"),
    ]  # fmt: skip


def test_pictures_and_documents_are_lists_of_links() -> None:
    """UI-01: each file has its name and size, with any characters in the name."""
    page = drawn(file('z<b>"x"</b>.pdf', "pdf"), file("p.png", "image", 8, 8), file("q.png", "image", 8, 8))
    document = page.select_one("a.document")
    assert document is not None
    said = [part.get_text().replace("\xa0", " ") for part in document.find_all("span", recursive=False)]
    assert said == ['z<b>"x"</b>.pdf', 'z<b>"x"</b>.pdf', "12 pages · 1.5 KB"]
    assert [link["href"] for link in page.select(".pictures a")] == ["/attachments/a_p", "/attachments/a_q"]
