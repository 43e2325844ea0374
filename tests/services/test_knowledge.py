"""Files of a workspace: who may add, rename, remove and restore them, and what searches find."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from pytest_django.fixtures import DjangoCaptureOnCommitCallbacks, Settings

from chat.errors import Forbidden, Invalid, NoSuchWorkspace, ServiceError
from chat.limits.quotas import QuotaExceeded, usage_of
from chat.models import KnowledgeFile, KnowledgePassage, Membership, User, Workspace
from chat.queries import knowledge as queries
from chat.queries.knowledge import NoSuchKnowledgeFile, files_of, select_files
from chat.services.deletion import purging
from chat.services.people import knowledge
from chat.services.sessions import lifecycle
from tests.support import files
from tests.support.testing_node import person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files"), pytest.mark.each_storage]
HOURS = "# Opening hours\n\nThe shop is open from nine to five. Refunds are made within 30 days."


def add(author: User, workspace: Workspace, name: str = "Hours.md", data: bytes | str = HOURS) -> KnowledgeFile:
    data = data.encode() if isinstance(data, str) else data
    return knowledge.add(
        author=author, workspace_id=workspace.pk, name=name, size=len(data), file=ContentFile(data, name)
    )


def found(user: User, workspace: Workspace, query: str, most: int = 8) -> list[tuple[str, int]]:
    """Return the files and numbers of the passages that a search finds."""
    return [(each.file.name, each.number) for each in queries.search(user, workspace.pk, query, most)]


def test_a_file_is_kept_with_its_text(ana: User, bo: User, workspace: Workspace) -> None:
    """CTX-09: members add files, which other members see with the name of the user who added them."""
    added = add(ana, workspace, "../Hand\u202ebook.pdf", files.pdf("Hello", "World"))
    [seen] = files_of(bo, workspace.pk)
    assert (seen.name, seen.kind, seen.pages, seen.added_by, seen.passage_count) == ("Handbook.pdf", "pdf", 2, ana, 2)
    with queries.open_original(seen) as file:
        assert file.read() == files.pdf("Hello", "World")
    assert [(each.number, each.page, each.text) for each in queries.passages_of(added, 1, 9)] == [
        (1, 1, "Hello"),
        (2, 2, "World"),
    ]
    assert usage_of(ana).stored_bytes == seen.size


def test_a_file_may_have_passages_without_words(ana: User, workspace: Workspace) -> None:
    """CTX-09: in a file with a key or an image in base64, whole passages can have only lines too long for words."""
    added = add(ana, workspace, "keys.txt", "The key:\n\n" + "MIIEpAIBAAKCAQEA7" * 500)
    assert added.passage_count > 1
    assert found(ana, workspace, "key") == [("keys.txt", 1)]


@pytest.mark.parametrize(
    ("data", "code"), [(b"", "empty"), (files.picture(), "unsupported"), (files.pdf(""), "no_text")]
)
def test_what_cannot_be_read_is_refused_and_nothing_stays(
    ana: User, workspace: Workspace, data: bytes, code: str
) -> None:
    """CTX-09: a file that cannot be read is refused with the reason, and nothing is stored."""
    with pytest.raises(ServiceError) as refused:
        add(ana, workspace, data=data)
    assert refused.value.code == code
    assert not KnowledgeFile.objects.exists()
    assert not default_storage.exists("knowledge")


def test_text_with_binary_data_is_not_called_another_type(ana: User, workspace: Workspace) -> None:
    """CTX-09: a Markdown file with a NUL is refused for the NUL, not for its file type."""
    with pytest.raises(ServiceError, match="binary data"):
        add(ana, workspace, "notes.md", data=b"# Notes\n\0")


def test_sizes_and_numbers_are_bounded(
    ana: User, workspace: Workspace, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTX-09: files count towards the quota of the user who added them, and the number in a workspace is limited."""
    settings.QUOTAS = "stored_megabytes=1"
    with pytest.raises(QuotaExceeded):
        add(ana, workspace, data="x" * 1_100_000)
    settings.MAX_ATTACHMENT_MB = 1
    with pytest.raises(ServiceError, match="too large"):
        add(ana, workspace, data="x" * 1_100_000)
    monkeypatch.setattr(knowledge, "MAX_FILES", 1)
    add(ana, workspace)
    with pytest.raises(Invalid, match="up to 1 files"):
        add(ana, workspace, "Two.md")


def test_names_are_unique_and_can_change(ana: User, workspace: Workspace) -> None:
    """CTX-09: a second file with the same name is refused, and nothing of it is stored."""
    first = add(ana, workspace)
    with pytest.raises(ServiceError, match="already"):
        add(ana, workspace)
    second = add(ana, workspace, "Two.md")
    with pytest.raises(ServiceError, match="already"):
        knowledge.rename(author=ana, file_id=second.pk, name="Hours.md")
    with pytest.raises(Invalid):
        knowledge.rename(author=ana, file_id=second.pk, name=" ")
    assert knowledge.rename(author=ana, file_id=first.pk, name="a/Open.md").name == "Open.md"
    assert len(default_storage.listdir("knowledge")[1]) == 2


def test_files_are_sorted_by_name_in_either_case(ana: User, workspace: Workspace) -> None:
    """CTX-09: capital letters do not come before all small ones."""
    for name in ("b.md", "C.md", "a.md"):
        add(ana, workspace, name)
    assert [file.name for file in files_of(ana, workspace.pk)] == ["a.md", "b.md", "C.md"]


def test_members_manage_their_own_files_and_admins_all(ana: User, bo: User, workspace: Workspace) -> None:
    """CTX-09, LIVE-06: members manage their own files and admins all files, as in the table of docs/users.md."""
    file = add(ana, workspace)
    for act in (knowledge.remove, knowledge.restore):
        with pytest.raises(Forbidden):
            act(author=bo, file_id=file.pk)
    with pytest.raises(Forbidden):
        knowledge.rename(author=bo, file_id=file.pk, name="x")
    Membership.objects.filter(user=bo).update(role=Membership.Role.ADMIN)
    knowledge.remove(author=bo, file_id=file.pk)
    stranger = person("Cy")
    with pytest.raises(NoSuchKnowledgeFile):
        knowledge.restore(author=stranger, file_id=file.pk)
    with pytest.raises(NoSuchWorkspace):
        add(stranger, workspace, "Two.md")
    guest = person("Gus", workspace)
    Membership.objects.filter(user=guest, workspace=workspace).update(role=Membership.Role.GUEST)
    with pytest.raises(NoSuchWorkspace):
        files_of(guest, workspace.pk)


def test_a_removed_file_is_not_found_until_it_is_restored(ana: User, workspace: Workspace) -> None:
    """CTX-09: a removed file is not found. It can be restored unless its name has been taken."""
    file = add(ana, workspace)
    assert found(ana, workspace, "refunds") == [("Hours.md", 1)]
    knowledge.remove(author=ana, file_id=file.pk)
    assert found(ana, workspace, "refunds") == []
    assert [each.pk for each in files_of(ana, workspace.pk, removed=True)] == [file.pk]
    other = add(ana, workspace)
    with pytest.raises(ServiceError, match="already"):
        knowledge.restore(author=ana, file_id=file.pk)
    knowledge.rename(author=ana, file_id=other.pk, name="New.md")
    knowledge.restore(author=ana, file_id=file.pk)
    assert found(ana, workspace, "refunds") == [("Hours.md", 1), ("New.md", 1)]


def test_the_best_passage_comes_first(ana: User, workspace: Workspace) -> None:
    """CTX-09: passages that contain more of the query's words rank higher, regardless of case, endings and accents."""
    add(ana, workspace, "Food.md", "We serve soups and fresh bread. The kitchen closes early.")
    add(ana, workspace, "Fees.md", "Crème brûlée is refunded with a fee. Refunding takes days.")
    add(ana, workspace, "Both.md", "Refunds of soup: a refund takes a day.")
    assert found(ana, workspace, "SOUP refund")[0] == ("Both.md", 1)
    assert {name for name, _number in found(ana, workspace, "SOUP refund")} == {"Both.md", "Fees.md", "Food.md"}
    assert found(ana, workspace, "creme") == [("Fees.md", 1)]
    assert found(ana, workspace, "kitch nothing else") == [("Food.md", 1)]
    assert found(ana, workspace, "SOUP refund", most=1) == [("Both.md", 1)]


@pytest.mark.parametrize("query", ["", "'", '"', "a:b & !c | (", "NEAR(x)", "-", "the", "\0", "x" * 400, "%_", "*"])
def test_any_query_is_harmless(ana: User, workspace: Workspace, query: str) -> None:
    """CTX-09: characters of the databases' query languages have no effect."""
    add(ana, workspace)
    assert found(ana, workspace, query) in ([], [("Hours.md", 1)])


def test_texts_without_spaces_are_found(ana: User, workspace: Workspace) -> None:
    """CTX-09: Chinese texts are found, also by words of two characters."""
    add(ana, workspace, "退款.md", "我们在三十天内接受退款。\n\n商店九点开门。")
    add(ana, workspace, "Andere.md", "Rückerstattungen dauern dreißig Tage.")
    assert found(ana, workspace, "退款政策是什么") == [("退款.md", 1)]
    assert found(ana, workspace, "rückerstattung") == [("Andere.md", 1)]


@pytest.mark.parametrize("character", "我款门")
def test_single_characters_are_found(ana: User, workspace: Workspace, character: str) -> None:
    """CTX-09: a Chinese character is found on its own, at the beginning, in the middle and at the end of a phrase."""
    add(ana, workspace, "退款.md", "我们在三十天内接受退款。商店九点开门。")
    add(ana, workspace, "Other.md", "他是")
    assert found(ana, workspace, character) == [("退款.md", 1)]


@pytest.mark.parametrize("query", ["OR", "or", "the and", "who is not in here"])
def test_words_of_all_texts_find_nothing(ana: User, workspace: Workspace, query: str) -> None:
    """CTX-09: on both databases, stop words find nothing, alone or beside other words."""
    add(ana, workspace, "One.md", "Tea or coffee, and who is not in here?")
    add(ana, workspace, "Two.md", "Water")
    assert found(ana, workspace, query) == []
    assert found(ana, workspace, f"{query} water") == [("Two.md", 1)]


def test_forms_of_a_word_count_once(ana: User, workspace: Workspace) -> None:
    """CTX-09: on both databases, a word that is repeated in another form does not change the order."""
    for name, text in (
        ("Bread.md", "Fresh bread"),
        ("Fees.md", "Small refunds"),
        ("Tea.md", "Tea"),
        ("Milk.md", "Milk"),
    ):
        add(ana, workspace, name, text)
    assert found(ana, workspace, "bread refund") == [("Bread.md", 1), ("Fees.md", 1)]
    assert found(ana, workspace, "bread refund refunds refunded") == [("Bread.md", 1), ("Fees.md", 1)]


def test_files_are_chosen_by_id_name_or_pattern(ana: User, workspace: Workspace) -> None:
    """CTX-09: a name that contains pattern characters is also matched as a name."""
    rows = [add(ana, workspace, name) for name in ("a.md", "b.pdf.md", "c[1].md")]
    for entries, names in (
        ([], []),
        (["*"], ["a.md", "b.pdf.md", "c[1].md"]),
        (["*.pdf.*", rows[0].pk], ["a.md", "b.pdf.md"]),
        (["c[1].md"], ["c[1].md"]),
    ):
        assert [each.name for each in select_files(rows, entries)] == names


def test_people_choose_files_of_the_workspace_alone(ana: User, workspace: Workspace) -> None:
    """CTX-09: ids of other workspaces are refused. A new agent brings its own files unless users have chosen some."""
    file = add(ana, workspace)
    elsewhere = person("Cy")
    foreign = add(elsewhere, Workspace.objects.get(members=elsewhere))
    session = lifecycle.create_session(owner=ana, workspace=workspace)
    with pytest.raises(Invalid, match="no file"):
        lifecycle.configure(session=session, author=ana, knowledge=[file.pk, foreign.pk])
    lifecycle.configure(session=session, author=ana, knowledge=[file.pk, file.pk])
    session.refresh_from_db()
    assert session.config["knowledge"] == [file.pk]
    lifecycle.set_agent(session=session, author=ana, agent=session.agent)
    session.refresh_from_db()
    assert session.config["knowledge"] == [file.pk]
    lifecycle.configure(session=session, author=ana, knowledge=["*"])
    session.refresh_from_db()
    assert [each.pk for each in select_files(queries.files_for(session), session.config["knowledge"])] == [file.pk]


def test_removed_files_and_what_a_crash_left_are_purged(
    ana: User,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """CTX-09: rows, passages, index entries and stored files are deleted; the files of other rows stay."""
    file, kept = add(ana, workspace), add(ana, workspace, "Kept.md")
    knowledge.remove(author=ana, file_id=file.pk)
    default_storage.save("knowledge/k_left", ContentFile(b"x"))
    purging.purge(before=timezone.now() - timedelta(days=1))
    assert KnowledgeFile.objects.count() == 2
    assert len(default_storage.listdir("knowledge")[1]) == 3
    monkeypatch.setattr(knowledge, "ORPHANS_KEPT", timedelta(days=-1))
    with django_capture_on_commit_callbacks(execute=True):
        assert purging.purge(before=timezone.now() + timedelta(days=1))["knowledge"] == 1
    assert default_storage.listdir("knowledge")[1] == [kept.pk]
    assert set(KnowledgePassage.objects.values_list("file", flat=True)) == {kept.pk}
    assert found(ana, workspace, "refunds") == [("Kept.md", 1)]
    with django_capture_on_commit_callbacks(execute=True):
        knowledge.forget([workspace.pk])
    assert default_storage.listdir("knowledge")[1] == []


def test_files_stay_where_deleting_a_workspace_fails(ana: User, workspace: Workspace) -> None:
    """CTX-09: if deleting a workspace is rolled back, the rows still have their stored files."""
    file = add(ana, workspace)

    def fail() -> None:
        with transaction.atomic():
            knowledge.forget([workspace.pk])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with queries.open_original(file) as stored:
        assert stored.read() == HOURS.encode()
