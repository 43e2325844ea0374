"""Notes that users accept are kept across sessions and given to the agents of users who may read them (CTX-08)."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse

from agents.messages import Json, ToolCall
from agents.providers.base import Request
from agents.providers.scripted import Reply
from agents.toolbox.widgets import remember
from chat.errors import Forbidden, Invalid, ServiceError
from chat.models import ChatMessage, Membership, MemoryNote, MessageStatus, Session, User
from chat.queries.memory import notes_in
from chat.services.people import memory
from chat.services.runs import answering
from chat.services.sessions import lifecycle
from tests.support.testing_node import TestNode, let_in, person

pytestmark = pytest.mark.both_databases
NOTE = ToolCall("c1", "remember", {"note": "Ana likes tables.", "scope": "me"})


def proposes(request: Request) -> Reply:
    """Propose a note, then report the users' decision."""
    return ["Noted."] if request.messages[-1].tool_results else [NOTE]


async def proposed(node: TestNode, author: User) -> tuple[Session, str]:
    """Begin a session in which a note waits for a decision."""
    session = await node.session(author)
    await node.send(session, author, "I like tables")
    waiting = ChatMessage.objects.filter(session=session, status=MessageStatus.WAITING)
    await node.until(waiting.exists)
    return session, (await node.do(waiting.get)).pk


async def decide(node: TestNode, session: Session, author: User, message_id: str, **value: object) -> None:
    await node.do(answering.answer, session=session, author=author, message_id=message_id, value=value)
    await node.idle(session)


async def system_of_next(node: TestNode, author: User, session: Session | None = None) -> str:
    """Return the system prompt of the next request, in a new session by default."""
    session = session or await node.session(author)
    provider = node.script([["Yes."]])
    await node.send(session, author, "Hi")
    await node.idle(session)
    return provider.requests[-1].system


async def test_accepted_note_is_in_later_sessions(node: TestNode, ana: User, bo: User) -> None:
    """CTX-08: a user edits and accepts a proposed note, which only their own private sessions get."""
    provider = node.script(proposes, tools=[remember])
    session, message_id = await proposed(node, ana)
    await decide(node, session, ana, message_id, decision="save", note="Ana loves  tables.", scope="me")
    assert "loves tables" in provider.requests[-1].messages[-1].tool_results[0].content
    note: MemoryNote = await node.do(MemoryNote.objects.get)
    assert (note.text, note.user_id, note.session_id) == ("Ana loves tables.", ana.pk, session.pk)
    assert (await system_of_next(node, ana)).endswith("About the person you talk to:\n- Ana loves tables.")
    assert "tables" not in await system_of_next(node, bo)
    shared = await node.session(ana)
    await node.do(let_in, shared, bo, "viewer")
    assert "tables" not in await system_of_next(node, ana, shared)
    off = await node.session(ana)
    await node.do(lifecycle.configure, session=off, author=ana, memory=False)
    assert "tables" not in await system_of_next(node, ana, off)


async def test_rejected_note_is_not_kept(node: TestNode, ana: User) -> None:
    """CTX-08: the agent learns that the note was rejected."""
    provider = node.script(proposes, tools=[remember])
    session, message_id = await proposed(node, ana)
    with pytest.raises(Invalid):
        await decide(node, session, ana, message_id, decision="save", note="x" * 501)
    await decide(node, session, ana, message_id, decision="reject")
    assert provider.requests[-1].messages[-1].tool_results[0].content == '{"decision": "reject"}'
    assert not await node.do(MemoryNote.objects.exists)


async def test_member_proposes_and_admin_accepts_notes_of_the_workspace(node: TestNode, ana: User, bo: User) -> None:
    """CTX-08: a member's note for the workspace is used after an owner or admin has accepted it."""
    workspace = (await node.session(ana)).workspace_id
    await node.do(Membership.objects.filter(user=ana, workspace=workspace).update, role="admin")
    await node.do(Membership.objects.update_or_create, user=bo, workspace_id=workspace, defaults={"role": "member"})
    note = await node.do(memory.keep_ours, author=bo, workspace_id=workspace, text="We use metric units.")
    assert not note.accepted
    assert "metric" not in await system_of_next(node, ana)
    change: Json = {"workspace_id": workspace, "note_id": note.pk}
    with pytest.raises(Forbidden):
        await node.do(memory.change_ours, author=bo, act="accept", **change)
    await node.do(memory.change_ours, author=ana, act="accept", text="We use metric units only.", **change)
    assert "About the team:\n- We use metric units only." in await system_of_next(node, ana)
    with pytest.raises(Forbidden):
        await node.do(memory.change_ours, author=bo, act="remove", **change)
    await node.do(memory.change_ours, author=ana, act="remove", **change)
    assert "metric" not in await system_of_next(node, ana)
    await node.do(memory.change_ours, author=ana, act="restore", **change)
    assert "metric" in await system_of_next(node, ana)


@pytest.mark.django_db
def test_notes_are_few_and_short_and_their_own(ana: User, bo: User) -> None:
    """CTX-08: the number of notes is limited, notes of other users cannot be changed, and the order is stable."""
    session = lifecycle.create_session(owner=ana)
    for number in range(memory.MAX_NOTES):
        note = memory.keep_mine(user=ana, text=f"Note {number}")
    with pytest.raises(Invalid, match="50 notes"):
        memory.keep_mine(user=ana, text="One more")
    with pytest.raises(ServiceError, match="no longer exists"):
        memory.change_mine(user=bo, note_id=note.pk, act="remove")
    memory.change_mine(user=ana, note_id=note.pk, act="edit", text="Changed")
    assert [each.text for each in notes_in(session)][-2:] == ["Note 48", "Changed"]
    with pytest.raises(Forbidden):
        memory.keep_ours(author=person("Cy"), workspace_id=session.workspace_id, text="Not mine")


@pytest.mark.django_db
@pytest.mark.parametrize("act", ["edit", "accept"])
def test_removed_note_is_not_changed(client: Client, ana: User, act: str) -> None:
    """CTX-08: a page that still shows a note that another page has removed says so, and keeps the text."""
    workspace = lifecycle.create_session(owner=ana).workspace
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.OWNER)
    note = memory.keep_ours(author=ana, workspace_id=workspace.pk, text="Deploys are on Tuesdays.")
    memory.change_ours(author=ana, workspace_id=workspace.pk, note_id=note.pk, act="remove")
    client.force_login(ana)
    data = {"part": "notes", "note_id": str(note.pk), "act": act, "text": "Deploys are on Mondays."}
    response = client.post(reverse("workspace-settings", args=[workspace.pk]), data)
    page = BeautifulSoup(response.content, "html.parser")
    assert response.status_code == 422
    assert "This note was removed in the meantime." in page.get_text()
    field = page.find(id="notes-new")
    assert field is not None
    assert field.get_text().strip() == "Deploys are on Mondays."
    note.refresh_from_db()
    assert note.text == "Deploys are on Tuesdays."


@pytest.mark.django_db
@pytest.mark.parametrize("whose", ["mine", "ours"])
def test_newer_note_is_not_overwritten_unseen(client: Client, ana: User, whose: str) -> None:
    """CTX-08: a form based on an older text shows the newer one and keeps the user's. Saved again, it replaces it."""
    client.force_login(ana)
    workspace = lifecycle.create_session(owner=ana).workspace
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Membership.Role.OWNER)
    if whose == "mine":
        address, part, note = reverse("settings"), "memory", memory.keep_mine(user=ana, text="Old.")
    else:
        address, part = reverse("workspace-settings", args=[workspace.pk]), "notes"
        note = memory.keep_ours(author=ana, workspace_id=workspace.pk, text="Old.")
    MemoryNote.objects.update(text="Newer.")
    form = {"part": part, "act": "edit", "note_id": note.pk, "text": "Mine.", "version": "Old."}
    response = client.post(address, form)
    page = BeautifulSoup(response.content, "html.parser")
    field, problem, version = (
        page.find(id=f"note-{note.pk}"),
        page.find(id="note-problem"),
        page.select("[name=version]"),
    )
    note.refresh_from_db()
    assert (response.status_code, note.text) == (422, "Newer.")
    assert field is not None
    assert problem is not None
    assert field.get_text().strip() == "Mine."
    assert "Newer." in problem.get_text()
    client.post(address, {**form, "version": version[-1]["value"]})
    note.refresh_from_db()
    assert note.text == "Mine."


@pytest.mark.django_db
def test_proposals_take_no_room_from_notes(ana: User, bo: User) -> None:
    """CTX-08: a member's waiting proposals are limited, and accepting one needs room for a note.
    Removed proposals do not displace a removed note, which can still be restored.
    """
    workspace = lifecycle.create_session(owner=ana).workspace_id
    Membership.objects.update_or_create(user=ana, workspace_id=workspace, defaults={"role": "owner"})
    Membership.objects.update_or_create(user=bo, workspace_id=workspace, defaults={"role": "member"})
    keep: Json = {"workspace_id": workspace}
    gone = memory.keep_ours(author=ana, text="Restore me", **keep)
    memory.change_ours(author=ana, note_id=gone.pk, act="remove", **keep)
    for number in range(memory.MAX_REMOVED + memory.MAX_PROPOSALS):
        proposal = memory.keep_ours(author=bo, text=f"Proposal {number}", **keep)
        if number < memory.MAX_REMOVED:
            memory.change_ours(author=bo, note_id=proposal.pk, act="remove", **keep)
    with pytest.raises(Invalid, match="10 notes that you have proposed"):
        memory.keep_ours(author=bo, text="One more", **keep)
    for number in range(memory.MAX_NOTES - 1):
        memory.keep_ours(author=ana, text=f"Note {number}", **keep)
    memory.change_ours(author=ana, note_id=gone.pk, act="restore", **keep)
    with pytest.raises(Invalid, match="50 notes"):
        memory.change_ours(author=ana, note_id=proposal.pk, act="accept", **keep)
    memory.change_ours(author=ana, note_id=gone.pk, act="remove", **keep)
    assert memory.change_ours(author=ana, note_id=proposal.pk, act="accept", **keep).accepted
    memory.keep_ours(author=bo, text="Room again", **keep)
