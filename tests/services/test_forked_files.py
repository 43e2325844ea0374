"""Workspace files of forks: all or none are copied, unchanged, for users who may see them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from datetime import datetime
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.sandbox import duplicating
from agents.sandbox.command import Limits
from agents.sandbox.folder import remove_folder
from chat.access import session_for
from chat.agents_setup import sandbox
from chat.errors import NoSuchSession
from chat.models import FORKED_FILES, ChatMessage, Session, SessionRun, User
from chat.origin import Interface, Origin, using_origin
from chat.queries import presets
from chat.queries.forked_files import NOT_COPIED_FOR_MODEL, ForkedFiles, forked_files, notice
from chat.runner.agent_input import prompt_of
from chat.services.deletion import purging, sessions
from chat.services.sessions import forked_files as service
from chat.services.sessions import incomplete
from chat.services.sessions.forking import fork
from chat.services.sessions.lifecycle import create_session
from chat.transfer.public import export_json
from tests.support.filled import ANSWER, DONE, HI, START, fill, live
from tests.support.rest import check_rest
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
TALK = [START, HI, ANSWER, DONE]
TOOLS = ["read_file", "write_file"]


@pytest.fixture(autouse=True)
def _own_workspaces(settings: Settings, tmp_path: Path) -> None:
    settings.WORKSPACES = str(tmp_path / "workspaces")


@pytest.fixture
def session(ana: User) -> Session:
    made = create_session(owner=ana, title="Plan")
    Session.objects.filter(pk=made.pk).update(config={**made.config_values, "tools": TOOLS})
    made.refresh_from_db()
    return made


@pytest.fixture
def folder(session: Session) -> Path:
    made = sandbox(session.pk).workspace
    (made / "src").mkdir(parents=True)
    (made / "src" / "main.py").write_text("print(1)\n")
    (made / "link").symlink_to("src/main.py")
    return made


def forked(session: Session, author: User, **values: Any) -> Session:
    """Fork at the last message before the marker."""
    rows = live(session) or fill(session, *TALK)
    return fork(session=session, author=author, message_id=rows[2].pk, **values)


def files_of(session: Session) -> dict[str, str]:
    workspace = sandbox(session.pk).workspace
    return {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}


@pytest.mark.both_databases
def prompt(session: Session) -> str:
    return prompt_of(session, live(session), presets.own(session))


def test_fork_has_the_files_as_they_are(session: Session, folder: Path, ana: User) -> None:
    """RUN-13: the agent finds the files in the fork, and its changes there do not affect the original."""
    before = timezone.now()
    made = forked(session, ana)
    assert files_of(made) == files_of(session) == {"src/main.py": "print(1)\n", "link": "print(1)\n"}
    (sandbox(made.pk).workspace / "src" / "main.py").write_text("new")
    assert (folder / "src" / "main.py").read_text() == "print(1)\n"
    found = forked_files(Session.objects.get(pk=made.pk))
    assert found is not None
    assert (found.left_out, found.problem, before <= found.at <= timezone.now()) == (0, "", True)
    assert "may be newer than the messages" in notice(made)
    assert (made.status, made.building_until, session_for(ana, made.pk)[0]) == ("active", None, made)
    assert [row.text for row in live(made)] == [row.text for row in live(session)]
    check_rest(made)


def test_fork_without_files_keeps_nothing(session: Session, ana: User) -> None:
    """RUN-13: a fork of an original without files, or with copies of attachments only, gets no files."""
    made = forked(session, ana)
    attachments = sandbox(session.pk).workspace / "attachments"
    attachments.mkdir(parents=True)
    (attachments / "a.txt").touch()
    (attachments / "a.txt").chmod(0o444)  # `touch` would reduce the mode by the umask
    for each in (made, forked(session, ana)):
        assert FORKED_FILES not in each.config
        assert (forked_files(each), notice(each), sandbox(each.pk).workspace.exists()) == (None, "", False)


def test_edited_message_is_answered_with_the_files(session: Session, folder: Path, ana: User) -> None:
    made = forked(session, ana, text="Ho", run=True)
    assert live(made)[-1].text == "Ho"
    assert SessionRun.objects.get(pk=made.pk).state == "running"
    assert "src/main.py" in files_of(made)


def test_fork_of_a_fork_has_the_fork_s_files(session: Session, folder: Path, ana: User) -> None:
    """RUN-13: a fork of a fork gets the fork's files and the time of the copy. Without files, it has no such note."""
    first = forked(session, ana)
    (sandbox(first.pk).workspace / "own").write_text("x")
    second = forked(first, ana)
    assert files_of(second) == {**files_of(session), "own": "x"}
    of_first, of_second = forked_files(first), forked_files(second)
    assert of_first is not None
    assert of_second is not None
    assert of_first.at < of_second.at
    remove_folder(sandbox(second.pk).workspace)
    assert forked_files(forked(second, ana)) is None


def test_viewer_gets_the_files_that_the_panel_shows(session: Session, folder: Path, bo: User) -> None:
    let_in(session, bo, "viewer")
    assert files_of(forked(session, bo)) == files_of(session)


def test_who_cannot_see_the_files_gets_none(session: Session, folder: Path, bo: User) -> None:
    """LIVE-06: staff who fork a session in the admin get no files, because the admin does not show them."""
    made = forked(session, bo)
    found = forked_files(made)
    assert found is not None
    assert found.reason == "access"
    assert not sandbox(made.pk).workspace.exists()


def _size(patch: pytest.MonkeyPatch, settings: Settings) -> None:
    patch.setattr(service, "MAX_SECONDS", -1.0)


def _disk(patch: pytest.MonkeyPatch, settings: Settings) -> None:
    patch.setattr(duplicating, "is_disk_full", lambda _folder: True)


def _limit(patch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.LIMITS = "fork_megabytes=1/hour"


def _failed(patch: pytest.MonkeyPatch, settings: Settings) -> None:
    def fail(*_values: object) -> int:
        raise OSError(errno.EIO, "broken")

    patch.setattr(duplicating, "_copy_piece", fail)


@pytest.mark.parametrize(
    ("arrange", "reason"), [(_size, "size"), (_disk, "disk"), (_limit, "limit"), (_failed, "failed")]
)
def test_fork_succeeds_without_files_and_says_why(
    session: Session,
    folder: Path,
    ana: User,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    arrange: Callable[[pytest.MonkeyPatch, Settings], None],
    reason: str,
) -> None:
    """RUN-13: if not all files can be copied, none are, because the agent could not notice that some are missing."""
    arrange(monkeypatch, settings)
    with using_origin(Origin(Interface.API)):
        if reason == "limit":
            assert files_of(forked(session, ana))
        made = forked(session, ana)
    found = forked_files(made)
    assert found is not None
    assert found.reason == reason
    assert "weren’t copied" in notice(made)
    assert not sandbox(made.pk).workspace.exists()
    assert made.status == "active"
    assert NOT_COPIED_FOR_MODEL in prompt(made)


def test_workspace_over_its_limit_is_not_copied(
    session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (folder / f"{number}").touch()
    monkeypatch.setattr(Limits, "__init__", partialmethod(Limits.__init__, workspace_files=2))
    found = forked_files(forked(session, ana))
    assert found is not None
    assert found.reason == "size"


@pytest.mark.both_databases
def test_no_one_sees_a_fork_while_its_files_are_copied(
    session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIVE-06: a fork is hidden while its files are copied.

    After a crash, the maintenance job removes it with its files.
    """
    looked: list[str] = []

    def stop_in_the_middle(*_values: object) -> int:
        made = Session.objects.get(parent_session=session)
        with pytest.raises(NoSuchSession):
            session_for(ana, made.pk)
        assert sandbox(made.pk).workspace.is_dir()
        looked.append(made.pk)
        raise KeyboardInterrupt

    monkeypatch.setattr(duplicating, "_copy_piece", stop_in_the_middle)
    monkeypatch.setattr(duplicating, "remove_folder", lambda _folder: None)  # as if the process had been killed
    monkeypatch.setattr(service, "remove_folder", lambda _folder: None)
    monkeypatch.setattr(sessions, "discard", lambda _session: None)
    with pytest.raises(KeyboardInterrupt):
        forked(session, ana)
    [left] = looked
    Session.objects.filter(pk=left).update(building_until="2026-01-01T00:00Z")
    assert incomplete.abandoned().exists()
    purging.purge(before=None)
    assert not Session.objects.filter(pk=left).exists()
    assert not sandbox(left).workspace.exists()
    assert files_of(session)


def test_failed_fork_leaves_no_files(
    session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-13: a fork that fails because another process erased the new session before the copy leaves no files."""
    real = duplicating.duplicate

    def erase_then_copy(*paths: Path, **values: Any) -> duplicating.Copied:
        sessions.erase_rows(Session.objects.get(parent_session=session).pk)
        return real(*paths, **values)

    monkeypatch.setattr(service, "duplicate", erase_then_copy)
    with pytest.raises(NoSuchSession):
        forked(session, ana)
    assert [path.name for path in folder.parent.iterdir()] == [session.pk]


def test_fork_of_a_session_that_is_erased_during_the_copy_fails(
    session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = duplicating.duplicate

    def copy_then_erase(*paths: Path, **values: Any) -> duplicating.Copied:
        copied = real(*paths, **values)
        sessions.erase_rows(session.pk)
        return copied

    monkeypatch.setattr(service, "duplicate", copy_then_erase)
    with pytest.raises(NoSuchSession):
        forked(session, ana)
    assert list(folder.parent.iterdir()) == []
    assert not Session.objects.exists()


def test_files_go_with_their_fork_alone(session: Session, folder: Path, ana: User) -> None:
    made = forked(session, ana)
    sessions.erase_rows(session.pk)
    assert files_of(made)
    sessions.erase_rows(made.pk)
    assert list(folder.parent.iterdir()) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_no_transaction_is_open_during_the_copy(
    client: Client, session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-13: other users can write while files are copied, also for a request to the API."""
    rows = fill(session, *TALK)
    real, states = duplicating.duplicate, list[bool]()

    def look(*paths: Path, **values: Any) -> duplicating.Copied:
        states.append(connection.in_atomic_block)
        return real(*paths, **values)

    monkeypatch.setattr(service, "duplicate", look)
    client.force_login(ana)
    address = f"/api/sessions/{session.pk}/messages/{rows[2].pk}/fork"
    answer = client.post(address, {"run": False}, content_type="application/json", headers={"If-Match": "*"})
    assert (answer.status_code, states) == (201, [False])
    made = answer.json()
    assert "may be newer" in made["notice"]
    shown = client.get(f"/api/sessions/{made['session']}").json()["forked_files"]
    assert (datetime.fromisoformat(shown.pop("at")).tzinfo is not None, shown) == (
        True,
        {"left_out": 0, "reason": None},
    )
    assert client.get(f"/api/sessions/{session.pk}").json()["forked_files"] is None


def test_large_copies_of_a_user_are_made_one_at_a_time(
    session: Session, folder: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's large copies run one at a time.

    Small ones run in parallel, because a program may fork many times at once.
    """
    Session.objects.filter(pk=create_session(owner=ana).pk).update(**incomplete.new_columns())
    forked(session, ana)
    monkeypatch.setattr(service, "LARGE_ENTRIES", 0)
    with pytest.raises(Exception, match="being copied"):
        forked(session, ana)


def test_model_knows_which_files_it_has(session: Session, folder: Path, ana: User) -> None:
    """RUN-13: the prompt of an agent with file tools says when the files were copied.
    Without tools, the prompt does not mention the fork.
    """
    made = forked(session, ana)
    assert prompt(made).startswith(prompt(session))
    found = forked_files(made)
    assert found is not None
    assert f"was copied on {found.at:%Y-%m-%d} at {found.at:%H:%M} UTC" in prompt(made)
    Session.objects.filter(pk=made.pk).update(mode="chat")
    made.refresh_from_db()
    assert "fork" not in prompt(made)


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ({"at": "2026-01-01T00:00:00+00:00", "left_out": 2, "reason": None}, (2, None)),
        ({"at": "2026-01-01T00:00:00+00:00", "left_out": 0, "reason": "later"}, (0, "failed")),
        ({"at": "yesterday", "left_out": 0, "reason": None}, None),
        ({"at": 3, "left_out": "x"}, None),
        ("nonsense", None),
    ],
)
def test_what_is_kept_may_be_of_another_version(session: Session, kept: object, found: Any) -> None:
    session.config = {FORKED_FILES: kept}
    read: ForkedFiles | None = forked_files(session)
    assert (read and (read.left_out, read.reason)) == found


def test_export_does_not_promise_files(session: Session, folder: Path, ana: User) -> None:
    made = forked(session, ana)
    assert FORKED_FILES in made.config
    assert ChatMessage.objects.filter(session=made).exists()
    assert FORKED_FILES not in "".join(export_json(made))
