"""What a former member's sessions may still use of the workspace."""

from __future__ import annotations

import pytest

from chat.errors import Invalid
from chat.models import Membership, MemoryNote, Session, User, Workspace
from chat.queries import presets
from chat.queries.knowledge import files_for, select_files, tools_of
from chat.queries.mcp_servers import with_servers
from chat.queries.memory import notes_in
from chat.services.people import memory
from chat.services.sessions import lifecycle
from tests.services.test_knowledge import add
from tests.services.test_mcp_servers import add as add_server

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_files")]
Role = Membership.Role


@pytest.fixture
def session(ana: User, bo: User, workspace: Workspace) -> Session:
    """A session of Bo that uses all files, notes and servers of the workspace."""
    Membership.objects.filter(user=ana, workspace=workspace).update(role=Role.OWNER)
    add(ana, workspace)
    add_server(ana, workspace, for_all_agents=True)
    memory.keep_ours(author=ana, workspace_id=workspace.pk, text="Prices are secret.")
    MemoryNote.objects.create(user=bo, text="Bo likes tables.", made_by=bo, accepted=True)
    session = lifecycle.create_session(owner=bo, workspace=workspace)
    lifecycle.configure(session=session, author=bo, knowledge=["*"])
    session.refresh_from_db()
    return session


Used = tuple[list[str], list[str], list[str], list[str]]


def used(session: Session) -> Used:
    """Return the files, their tools, the notes and the servers that a session uses."""
    own = with_servers(presets.own(session), session)
    tools = [tool.name for tool in tools_of(session, own) if "knowledge" in tool.name]
    files = [each.name for each in select_files(files_for(session), own.knowledge)]
    return files, tools, [note.text for note in notes_in(session)], [server.name for server in own.servers]


ALL: Used = (
    ["Hours.md"],
    ["search_knowledge", "read_knowledge"],
    ["Bo likes tables.", "Prices are secret."],
    ["tickets"],
)
OWN: Used = ([], [], ["Bo likes tables."], [])


@pytest.mark.parametrize("role", [None, Role.GUEST])
def test_a_former_members_session_uses_nothing_of_the_team(
    ana: User, bo: User, workspace: Workspace, session: Session, role: str | None
) -> None:
    """CTX-08, CTX-09, UI-20: a former member's sessions use nothing of the team, not even what is added later.

    Their own notes stay, and all access returns when they rejoin.
    """
    assert used(session) == ALL
    bos = Membership.objects.filter(user=bo, workspace=workspace)
    if role is None:
        bos.delete()
    else:
        bos.update(role=role)
    later = add(ana, workspace, "Later.md")
    assert used(session) == OWN
    with pytest.raises(Invalid, match="no file"):
        lifecycle.configure(session=session, author=bo, knowledge=[later.pk])
    with pytest.raises(Invalid) as refused:
        lifecycle.configure(session=session, author=bo, tools=["tickets__*"])
    assert "Choose from" in refused.value.message
    assert refused.value.message.count("tickets") == 1  # the requested server
    bos.delete()
    Membership.objects.create(user=bo, workspace=workspace)
    assert used(session) == (["Hours.md", "Later.md"], *ALL[1:])
