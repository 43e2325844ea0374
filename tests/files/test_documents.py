"""PDF and text files, file names, and files that are neither."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from agents.process_pool import Limits, ProcessPool
from chat.files import documents, pdf, plain
from chat.files.contents import Contents, Unusable
from chat.files.names import clean
from chat.files.sniffing import read
from chat.files.user_locks import UserLocks
from tests.support import files


def test_a_pdf_is_counted_and_read() -> None:
    """CTX-01: a PDF file gives one text per page."""
    data = files.pdf("Hello", "World")
    assert read(data) == Contents("pdf", "application/pdf", data, pages=2, text="[Page 1]\nHello\n\n[Page 2]\nWorld")


def test_a_pdf_that_needs_no_password_is_accepted_and_a_locked_one_refused() -> None:
    """A PDF file that needs a password is refused, one that only restricts printing is accepted (MSG-12)."""
    assert read(files.locked_pdf("")).pages == 1
    with pytest.raises(Unusable, match="locked_pdf"):
        read(files.locked_pdf("secret"))


@pytest.mark.parametrize("data", [b"%PDF-1.7", b"%PDF-1.7\n" + b"\0\xff" * 5000, files.pdf("x")[:200], files.pdf()])
def test_a_broken_pdf_is_refused(data: bytes) -> None:
    """A damaged PDF file is refused (MSG-12)."""
    with pytest.raises(Unusable, match="broken_pdf"):
        read(data)


def test_a_pdf_that_is_a_bomb_is_taken_without_its_text() -> None:
    """MSG-12: 2 GB of spaces compressed to 2 MB do no harm."""
    bomb = zlib.compress(b" " * 200_000_000)
    body = b"<< /Length %d /Filter /FlateDecode >> stream\n%s\nendstream" % (len(bomb), bomb)
    plain_stream = b"<< /Length 33 >> stream\nBT /F 12 Tf 20 100 Td (x) Tj ET"
    whole = files.pdf("x")
    start = whole.index(b"<< /Length")
    end = whole.index(b"endstream") + len(b"endstream")
    assert plain_stream[:10] == whole[start : start + 10]
    taken = read(whole[:start] + body + whole[end:])
    assert (taken.kind, taken.pages, taken.text) == ("pdf", 1, "")


def test_a_pdf_that_takes_for_ever_is_taken_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-12: the results before the time limit are kept."""
    limits = Limits(cpu_seconds=0.2, seconds=20, memory_mb=256, output_bytes=1000)
    monkeypatch.setattr(pdf, "_processes", ProcessPool("tests.support.slow_pdf", limits, size=1))
    assert read(files.pdf("x")).pages == 7


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve – 日本".encode(), "naïve – 日本"),
        ("\ufeffa;b".encode(), "a;b"),
        ("Grüße".encode("utf-16"), "Grüße"),
        ("naïve café, déjà vu".encode("cp1252"), "naïve café, déjà vu"),
        ("会议记录：下周一开始。".encode("gb18030"), "会议记录：下周一开始。"),
        (b'{"a": 1}\r\n', '{"a": 1}\r\n'),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"<svg onload='alert(1)'></svg>", "<svg onload='alert(1)'></svg>"),
        (b"<!doctype html><script>x</script>", "<!doctype html><script>x</script>"),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, text: str) -> None:
    """MSG-12: the result is plain text in any language."""
    assert read(data) == Contents("text", "text/plain", data, text=text)


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04\x14\0\0\0", b"\x7fELF\x02\x01\x01\0", bytes(range(256)), b"text\0more", b"\0\0\0\x18ftypheic"]
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    """Binary data is not accepted as text (MSG-12)."""
    with pytest.raises(Unusable, match="unsupported"):
        read(data)


def test_nothing_is_refused() -> None:
    """An empty file is refused (MSG-12)."""
    for data in (b"", b" \n"):
        with pytest.raises(Unusable, match="empty"):
            read(data)


def test_a_long_text_is_cut_for_models() -> None:
    """CTX-01: the text for the model has a note that it was cut."""
    rest_is_out = "\n\n[The rest is left out.]"
    assert read(b"x" * (plain.MAX_CHARS + 5)).text == "x" * plain.MAX_CHARS + rest_is_out
    assert read("x😀".encode() * plain.MAX_CHARS).text == "x😀" * (plain.MAX_CHARS // 2) + rest_is_out
    assert read("😀".encode() * plain.MAX_CHARS + b"x").text == "😀" * plain.MAX_CHARS + rest_is_out
    with pytest.raises(Unusable, match="unsupported"):
        read(b"x" * plain.MAX_BYTES + b"\0\1")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("notes.txt", "notes.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ana\\报告.pdf", "报告.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\x00b\nc\td.txt", "abcd.txt"),
        ("e\u0301.png", "é.png"),
        ("👩\u200d👩\u200d👧.png", "👩\u200d👩\u200d👧.png"),
        ("  two   words .md", "two words .md"),
        ("", "file"),
        ("\u202e", "file"),
        ("x" * 300 + ".png", "x" * 251 + ".png"),
        ("x" * 300, "x" * 255),
    ],
)
def test_names_are_names_and_no_paths(name: str, kept: str) -> None:
    """File names keep no path (MSG-12)."""
    assert clean(name) == kept


def test_one_endless_page_is_cut_where_it_is_read() -> None:
    """MSG-12: the reading process returns no more text than the server keeps."""
    said = "".join(pdf._pieces(files.pdf("a" * 2_000_000)))
    assert plain.MAX_CHARS < len(said) < plain.MAX_CHARS + 100


def test_a_person_s_files_are_read_one_after_the_other_and_others_do_not_wait() -> None:
    """One user who uploads files in a loop must not block the uploads of others."""
    locks, order = UserLocks(), list[str]()
    with ThreadPoolExecutor() as threads, locks.hold(1):
        second = threads.submit(lambda: order.append("second") if _enters(locks, 1) else None)
        assert threads.submit(_enters, locks, 2).result(20)
        order.append("first")
        assert not second.done()
    assert order == ["first", "second"]
    assert locks._locks == {}


def _enters(locks: UserLocks, person: int) -> bool:
    with locks.hold(person):
        return True


def test_a_document_is_read_as_its_text() -> None:
    """CTX-09: PDF files are read page by page, HTML as Markdown without its scripts, and other text unchanged."""
    found = documents.read("a.pdf", files.pdf("Hello", "World"))
    assert (found.kind, found.pages, found.parts) == ("pdf", 2, [(1, "Hello"), (2, "World")])
    html = b"<!doctype html><title>T</title><h1>Hours</h1><script>x()</script><p>Nine to <b>five</b></p>"
    assert documents.read("a", html).parts == [(None, "# Hours\n\nNine to **five**")]
    assert documents.read("a.py", "print('ä')".encode("utf-16")).parts == [(None, "print('ä')")]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"  \n", "empty"),
        (files.picture(), "unsupported"),
        (b"PK\x03\x04\0\0binary", "unsupported"),
        (files.pdf(""), "no_text"),
        (files.pdf("x")[:200], "broken_pdf"),
        (files.locked_pdf("secret"), "locked_pdf"),
        (b"<html><script>only()</script>", "no_text"),
    ],
)
def test_what_has_no_text_is_no_document(data: bytes, problem: str) -> None:
    """CTX-09: the error explains the problem with the file."""
    with pytest.raises(Unusable, match=problem):
        documents.read("a", data)


def test_long_documents_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-09: the stored text of a document is bounded, and it records that there is more."""
    monkeypatch.setattr(documents, "MAX_CHARS", 10)
    assert documents.read("a", b"0123456789abc").parts == [(None, "0123456789")]
    assert documents.read("a", b"0123456789abc").is_cut
    assert documents.read("a.htm", b"<p>0123456789abc</p>").parts == [(None, "0123456789")]
    found = documents.read("a.pdf", files.pdf("0123456", "789abcdef", "more"))
    assert (found.parts, found.pages, found.is_cut) == ([(1, "0123456"), (2, "789")], 3, True)


def test_a_pdf_that_takes_for_ever_is_refused_as_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(cpu_seconds=0.2, seconds=20, memory_mb=256, output_bytes=1000)
    monkeypatch.setattr(documents, "_pdf_processes", ProcessPool("tests.support.slow_pdf", limits, size=1))
    with pytest.raises(Unusable, match="too_complex"):
        documents.read("a.pdf", files.pdf("x"))
