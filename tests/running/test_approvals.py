"""UI-12, UI-20: rules of a workspace, and calls that several people, or people with a role, have to approve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from agents.providers.scripted import Reply
from chat.errors import ServiceError
from chat.models import ApprovalRule, ChatMessage, Membership, SecurityEvent, Session, Share, User, Workspace
from chat.queries.session_list import listing
from chat.rendering.messages.questions import QuestionCard
from chat.services.batches import Deadline
from chat.services.deletion.names import ERASED_SENDER, erase_names
from chat.services.people import workspace_rules
from chat.snapshots import MessageSnapshot
from tests.running.test_waiting import CONFIG, answer, deploy_call, deploying, results, waiting
from tests.support.rest import check_rest
from tests.support.testing_node import TestNode, let_in, person

YES: dict[str, Any] = {"approved": True, "scope": "once"}


async def begun(node: TestNode, owner: User, *others: User) -> Session:
    session = await node.session(owner)
    for other in others:
        await node.do(let_in, session, other, "editor")
    await node.send(session, owner, "Deploy")
    return session


async def rule(node: TestNode, session_of: User, **values: Any) -> None:
    def save() -> None:
        membership = Membership.objects.get(user=session_of)
        before, membership.role = membership.role, "owner"
        membership.save()
        workspace_rules.save(author=session_of, workspace_id=membership.workspace_id, **values)
        Membership.objects.filter(pk=membership.pk).update(role=before)

    await node.do(save)


def decided(row: ChatMessage, field: str) -> list[Any]:
    """Return a field of all decisions about a call."""
    return [each[field] for each in (row.approval or {})["decisions"]]


def waits_for(user: User, session: Session) -> bool:
    """Tell whether the list says that a session waits for the user."""
    (row,) = (row for group in listing(user, UTC).groups for row in group.rows if row.id == session.pk)
    return row.waiting


async def refused(node: TestNode, session: Session, author: User, row: ChatMessage, value: Any) -> str:
    with pytest.raises(ServiceError) as error:
        await answer(node, session, author, row, value)
    return error.value.code


async def test_two_people_have_to_approve(node: TestNode, ana: User, bo: User) -> None:
    """Each once; what was decided is on the row, and the call runs with the last approval."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy(production)", verdict="ask", approvals=2)
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    assert row.approval == {"needed": 2, "approvers": "", "decisions": []}
    assert [await node.do(waits_for, each, session) for each in (ana, bo)] == [True, True]
    await answer(node, session, ana, row, YES)
    (row,) = await waiting(node, session)
    assert decided(row, "name") == ["Ana"]
    assert [await node.do(waits_for, each, session) for each in (ana, bo)] == [False, True]
    assert await refused(node, session, ana, row, YES) == "already_approved"
    assert await refused(node, session, bo, row, {"approved": True, "scope": "session"}) == "invalid"
    await answer(node, session, bo, row, YES)
    await node.idle(session)
    assert ran == ["production"]
    row = await node.do(ChatMessage.objects.get, pk=row.pk)
    assert (decided(row, "name"), decided(row, "approved")) == (["Ana", "Bo"], [True, True])
    assert (row.status, row.answered_by_name) == ("complete", "Bo")
    assert await node.do(SecurityEvent.objects.filter(kind="tool_decided").count) == 2
    await node.do(check_rest, session)
    assert await node.do(erase_names, ana, Deadline(60))
    row = await node.do(ChatMessage.objects.get, pk=row.pk)
    assert decided(row, "name") == [ERASED_SENDER, "Bo"]


async def test_one_refusal_ends_it(node: TestNode, ana: User, bo: User) -> None:
    """After an approval, too; the model reads who refused."""
    ran: list[str] = []
    node.script([[deploy_call()], ["As you wish."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2)
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    await answer(node, session, ana, row, YES)
    await answer(node, session, bo, row, {"approved": False, "comment": "Not today"})
    await node.idle(session)
    assert (ran, results(node)[0].content) == ([], "[Not run: Bo refused this call.] Not today")
    row = await node.do(ChatMessage.objects.get, pk=row.pk)
    assert decided(row, "approved") == [True, False]


async def test_other_arguments_have_to_be_approved_again(node: TestNode, ana: User, bo: User) -> None:
    """Who changes them has approved them; the others have to agree again."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2)
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    await answer(node, session, ana, row, YES)
    await answer(node, session, bo, row, {**YES, "arguments": {"target": "test"}})
    assert [await node.do(waits_for, each, session) for each in (ana, bo)] == [True, False]
    assert await refused(node, session, bo, row, YES) == "already_approved"
    await answer(node, session, ana, row, YES)
    await node.idle(session)
    assert ran == ["test"]
    await node.do(check_rest, session)


async def test_other_arguments_can_need_more_approvals(node: TestNode, ana: User, bo: User) -> None:
    """UI-20: a call cannot get past a rule by being changed while it is approved, and what it needs never gets less."""
    ran: list[str] = []
    node.script([[deploy_call("staging")], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy(production)", verdict="ask", approvals=2, approvers="owner")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    assert row.approval is None
    production = {**YES, "arguments": {"target": "production"}}
    assert await refused(node, session, bo, row, production) == "forbidden"
    await node.do(Membership.objects.filter(user__in=[ana, bo]).update, role="owner")
    assert await refused(node, session, bo, row, {**production, "scope": "session"}) == "invalid"
    await answer(node, session, bo, row, production)
    (row,) = await waiting(node, session)
    assert (row.arguments, decided(row, "name")) == ({"target": "production"}, ["Bo"])
    await answer(node, session, ana, row, {**YES, "arguments": {"target": "staging"}})
    (row,) = await waiting(node, session)
    await answer(node, session, bo, row, YES)
    await node.idle(session)
    assert ran == ["staging"]
    await node.do(check_rest, session)


async def test_only_the_named_role_approves(node: TestNode, ana: User, bo: User) -> None:
    """What was allowed for the session does not cover it, and every editor may refuse."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvers="admin")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    assert await refused(node, session, bo, row, YES) == "forbidden"
    await node.do(Membership.objects.filter(user=bo).update, role="admin")
    await answer(node, session, bo, row, YES)
    await node.idle(session)
    assert ran == ["production"]


@pytest.mark.parametrize("lost", ["share", "editor", "role", "membership", "account"])
async def test_approval_of_someone_who_lost_the_right_does_not_count(
    node: TestNode, ana: User, bo: User, workspace: Workspace, lost: str
) -> None:
    """UI-20: they are on the card no more, and another person has to agree; back in, they can approve again."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2, approvers="admin")
    cy = await node.do(person, "Cy", workspace)
    await node.do(Membership.objects.filter(user__in=[ana, bo, cy]).update, role="admin")
    session = await begun(node, ana, bo, cy)
    (row,) = await waiting(node, session)
    await answer(node, session, bo, row, YES)
    shares, members = Share.objects.filter(user=bo), Membership.objects.filter(user=bo)
    take: dict[str, Callable[[], object]] = {
        "share": shares.delete,
        "editor": lambda: shares.update(role="viewer"),
        "role": lambda: members.update(role="member"),
        "membership": members.delete,
        "account": lambda: User.objects.filter(pk=bo.pk).update(is_active=False),
    }
    await node.do(take[lost])
    await answer(node, session, ana, row, YES)
    (row,) = await waiting(node, session)
    assert (decided(row, "name"), decided(row, "lapsed")) == (["Bo", "Ana"], [True, False])
    assert (row.approval or {})["agreed"] == [ana.pk]
    assert "1 more approval" in QuestionCard.of(MessageSnapshot.from_row(row)).needed  # type: ignore[union-attr]
    await answer(node, session, cy, row, YES)
    await node.idle(session)
    assert ran == ["production"]
    await node.do(check_rest, session)


async def test_rules_of_the_workspace_deny_and_allow(node: TestNode, ana: User) -> None:
    """Denied calls never run, in no session; what is allowed runs unasked; rules can be removed and brought back."""
    ran: list[str] = []
    script: list[Reply] = [[deploy_call("production"), deploy_call("test", 2)], ["Done."]]
    node.script(script, CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy(production)", verdict="deny")
    await rule(node, ana, rule="deploy", verdict="allow")
    session = await begun(node, ana)
    await node.idle(session)
    assert ran == ["test"]
    assert "do not allow" in results(node)[0].content


@pytest.mark.django_db
def test_rules_are_made_by_owners_and_admins(workspace: Workspace, ana: User) -> None:
    """UI-12: of valid text, each once, and a removed one comes back as it was."""

    def save(**values: Any) -> ApprovalRule:
        return workspace_rules.save(author=ana, workspace_id=workspace.pk, **values)

    with pytest.raises(ServiceError, match="Ask an owner"):
        save(rule="bash", verdict="deny")
    Membership.objects.update(role="admin")
    for values in (
        {"rule": "(", "verdict": "deny"},
        {"rule": "bash", "verdict": "often"},
        {"rule": "bash", "verdict": "ask", "approvals": 0},
        {"rule": "bash", "verdict": "ask", "approvers": "me"},
    ):
        with pytest.raises(ServiceError) as error:
            save(**values)
        assert error.value.code == "invalid"
    save(rule="bash", verdict="deny")
    row = save(rule=" bash ", verdict="ask", approvals=2, approvers="owner")
    assert [str(each) for each in ApprovalRule.objects.all()] == ["*: bash"]
    _row, undo = workspace_rules.remove(author=ana, workspace_id=workspace.pk, rule_id=row.pk)
    back = workspace_rules.bring_back(author=ana, workspace_id=workspace.pk, undo=undo)
    assert (back.verdict, back.approvals, back.approvers) == ("ask", 2, "owner")
    workspace_rules.remove(author=ana, workspace_id=workspace.pk, rule_id=back.pk)
    for act in (
        lambda: workspace_rules.remove(author=ana, workspace_id=workspace.pk, rule_id=back.pk),
        lambda: workspace_rules.bring_back(author=ana, workspace_id=workspace.pk, undo="nonsense"),
    ):
        with pytest.raises(ServiceError):
            act()
