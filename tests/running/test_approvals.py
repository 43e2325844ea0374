"""UI-12, UI-20: approval rules of a workspace, and calls that several users, or users with a role, have to approve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from functools import partial
from typing import Any

import pytest

from agents.providers.scripted import Reply
from chat.errors import ServiceError
from chat.models import ApprovalRule, ChatMessage, Membership, SecurityEvent, Session, Share, User, Workspace
from chat.queries.approvals import approvers_present
from chat.queries.session_list import listing
from chat.rendering.messages.frames import message_html
from chat.rendering.messages.questions import QuestionCard
from chat.services.batches import Deadline
from chat.services.deletion.names import ERASED_SENDER, erase_names
from chat.services.maintenance import jobs
from chat.services.people import members, sharing, workspace_rules
from chat.services.sessions import lifecycle
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
    """Return whether the session list marks a session as waiting for the user."""
    (row,) = (row for group in listing(user, UTC).groups for row in group.rows if row.id == session.pk)
    return row.waiting


async def refused(node: TestNode, session: Session, author: User, row: ChatMessage, value: Any) -> str:
    with pytest.raises(ServiceError) as error:
        await answer(node, session, author, row, value)
    return error.value.code


async def test_two_people_have_to_approve(node: TestNode, ana: User, bo: User) -> None:
    """Each user counts once. The row records the decisions, and the call runs after the last approval."""
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
    """One refusal ends the call even after an approval, and the model reads who refused."""
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
    """A user who changes the arguments approves them; the other users have to approve again."""
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


async def test_card_shows_whose_approval_was_of_other_arguments(node: TestNode, ana: User, bo: User) -> None:
    """UI-20: an approval that no longer counts stays on the card until its user approves the new arguments."""
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying([])])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2)
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    await answer(node, session, ana, row, YES)
    await answer(node, session, bo, row, {**YES, "arguments": {"target": "test"}})

    (row,) = await waiting(node, session)
    card = await node.do(lambda: str(message_html(MessageSnapshot.from_row(row))))

    assert "<bdi>Ana</bdi> approved the earlier arguments" in card
    await answer(node, session, ana, row, YES)
    await node.idle(session)
    row = await node.do(ChatMessage.objects.get, pk=row.pk)
    assert "earlier arguments" not in await node.do(lambda: str(message_html(MessageSnapshot.from_row(row))))


async def test_other_arguments_can_need_more_approvals(node: TestNode, ana: User, bo: User) -> None:
    """UI-20: changed arguments cannot evade a rule, and the number of approvals that a call needs never decreases."""
    ran: list[str] = []
    node.script([[deploy_call("staging")], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy(production)", verdict="ask", approvals=2, approvers="owner")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    assert row.approval is None
    production = {**YES, "arguments": {"target": "production"}}
    assert await refused(node, session, bo, row, production) == "forbidden"
    hidden = {**YES, "arguments": {"target": "production", "query": "staging"}}
    assert await refused(node, session, bo, row, hidden) == "forbidden"
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
    """Users without the role that a rule names cannot approve the call; after one of them got the role, they can.

    The session list shows the session as waiting only for users with the role.
    """
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvers="admin")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    assert await refused(node, session, bo, row, YES) == "forbidden"
    assert [await node.do(waits_for, each, session) for each in (ana, bo)] == [False, False]
    await node.do(Membership.objects.filter(user=bo).update, role="admin")
    assert [await node.do(waits_for, each, session) for each in (ana, bo)] == [False, True]
    await answer(node, session, bo, row, YES)
    await node.idle(session)
    assert ran == ["production"]


@pytest.mark.parametrize("lost", ["share", "editor", "role", "membership", "account"])
async def test_approval_of_someone_who_lost_the_right_does_not_count(
    node: TestNode, ana: User, bo: User, workspace: Workspace, lost: str
) -> None:
    """UI-20: the approval of a user who lost the right is marked as lapsed, and another user has to approve in their
    place."""
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


@pytest.mark.parametrize("lost", ["share", "role", "membership", "account"])
async def test_card_shows_that_an_approval_has_lapsed(
    node: TestNode, ana: User, bo: User, workspace: Workspace, lost: str
) -> None:
    """UI-20: the card shows the lapsed approval before the next decision.
    A service that takes the right away updates the card immediately. A right that was lost without a service is found
    by the maintenance job.
    """
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying([])])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2, approvers="admin")
    await node.do(Membership.objects.filter(user=ana).update, role="owner")
    await node.do(Membership.objects.filter(user=bo).update, role="admin")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    await node.do(jobs.run)  # the first run also purges
    await answer(node, session, bo, row, YES)
    assert not await node.do(jobs.run)
    about: dict[str, Any] = {"author": ana, "workspace_id": workspace.pk, "user_id": bo.pk}
    take: dict[str, Callable[[], object]] = {
        "share": lambda: sharing.unshare(session=session, author=ana, user=bo),
        "role": lambda: members.change_role(**about, role="member"),
        "membership": lambda: members.remove(**about),
        "account": lambda: User.objects.filter(pk=bo.pk).update(is_active=False),
    }
    await node.do(take[lost])
    assert await node.do(jobs.run) == (lost == "account")
    (row,) = await waiting(node, session)
    assert (decided(row, "lapsed"), (row.approval or {})["agreed"]) == ([True], [])
    card = await node.do(lambda: str(message_html(MessageSnapshot.from_row(row))))
    assert "2 more approvals of owners or admins needed" in card
    assert "<bdi>Bo</bdi> approved this but no longer has permission" in card
    assert 'data-approved=""' in card
    await answer(node, session, ana, row, {"approved": False, "comment": ""})
    await node.idle(session)
    await node.do(check_rest, session)


async def test_lost_right_is_checked_only_where_it_counts(
    node: TestNode, ana: User, bo: User, workspace: Workspace
) -> None:
    """UI-20: a changed share checks the waiting calls of its session, and a changed role those of its workspace.

    The calls of other sessions wait for the maintenance job.
    """
    node.script([[deploy_call()]] * 3, CONFIG, [deploying([])])
    dee = await node.do(person, "Dee")
    for owner in (ana, dee):
        await rule(node, owner, rule="deploy", verdict="ask", approvals=2)
    await node.do(Membership.objects.filter(user=ana).update, role="owner")
    await node.do(Membership.objects.create, user=bo, workspace_id=dee.memberships.values_list("workspace")[:1])
    sessions = [await begun(node, owner, bo) for owner in (ana, ana, dee)]
    for session in sessions:
        (row,) = await waiting(node, session)
        await answer(node, session, bo, row, YES)
    await node.do(Share.objects.filter(user=bo, session__in=sessions[1:]).delete)

    async def lapsed() -> list[bool]:
        return [(await waiting(node, session))[0].approval["decisions"][0]["lapsed"] for session in sessions]  # type: ignore[index]

    await node.do(sharing.unshare, session=sessions[0], author=ana, user=bo)
    assert await lapsed() == [True, False, False]
    await node.do(members.change_role, author=ana, workspace_id=workspace.pk, user_id=bo.pk, role="admin")
    assert await lapsed() == [True, True, False]
    await node.do(jobs.run)
    assert await lapsed() == [True, True, True]


@pytest.mark.django_db
def test_users_who_can_approve_in_a_session_are_counted(ana: User, bo: User) -> None:
    """UI-20: active users who can write in the session count, also through an open session, by the role they have."""
    session = lifecycle.create_session(owner=ana)
    roles = Membership.objects.filter(user=bo)
    roles.update(role="admin")
    assert approvers_present(session) == {"": 1, "admin": 0, "owner": 0}
    let_in(session, bo, "viewer")
    assert approvers_present(session) == {"": 1, "admin": 0, "owner": 0}
    let_in(session, bo, "editor")
    assert approvers_present(session) == {"": 2, "admin": 1, "owner": 0}
    roles.update(role="owner")
    assert approvers_present(session) == {"": 2, "admin": 1, "owner": 1}
    User.objects.filter(pk=bo.pk).update(is_active=False)
    assert approvers_present(session) == {"": 1, "admin": 0, "owner": 0}
    User.objects.filter(pk=bo.pk).update(is_active=True)
    Share.objects.filter(session=session).delete()
    assert approvers_present(session) == {"": 1, "admin": 0, "owner": 0}
    Session.objects.filter(pk=session.pk).update(workspace_role="editor")
    session.refresh_from_db()
    assert approvers_present(session) == {"": 2, "admin": 1, "owner": 1}


@pytest.mark.parametrize("lost", ["share", "role", "membership"])
async def test_user_who_regains_the_right_approves_again(
    node: TestNode, ana: User, bo: User, workspace: Workspace, lost: str
) -> None:
    """UI-20: a lapsed approval does not count again by itself; its user approves again, and the call runs."""
    ran: list[str] = []
    node.script([[deploy_call()], ["Done."]], CONFIG, [deploying(ran)])
    await rule(node, ana, rule="deploy", verdict="ask", approvals=2, approvers="admin")
    await node.do(Membership.objects.filter(user=ana).update, role="owner")
    await node.do(Membership.objects.filter(user=bo).update, role="admin")
    session = await begun(node, ana, bo)
    (row,) = await waiting(node, session)
    await answer(node, session, bo, row, YES)
    share = partial(sharing.share, session=session, author=ana, user=bo, role="editor")
    change = partial(members.change_role, author=ana, workspace_id=workspace.pk, user_id=bo.pk)

    def lose() -> None:
        about: dict[str, Any] = {"author": ana, "workspace_id": workspace.pk}
        if lost == "membership":
            members.bring_back(**about, undo=members.remove(**about, user_id=bo.pk).undo)
        elif lost == "share":
            sharing.unshare(session=session, author=ana, user=bo)
            share()
        else:
            change(role="member")
            change(role="admin")

    await node.do(lose)
    (row,) = await waiting(node, session)
    assert (row.approval or {})["agreed"] == []
    assert await node.do(waits_for, bo, session)
    await answer(node, session, ana, row, YES)
    (row,) = await waiting(node, session)
    await answer(node, session, bo, row, YES)
    await node.idle(session)
    assert ran == ["production"]
    assert decided(await node.do(ChatMessage.objects.get, pk=row.pk), "lapsed") == [True, False, False]
    await node.do(check_rest, session)


async def test_rules_of_the_workspace_deny_and_allow(node: TestNode, ana: User) -> None:
    """A call that a rule denies does not run, and its result gives the reason. A call that a rule allows runs without
    approval."""
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
    """UI-12: an admin adds rules, and a member cannot. Invalid values are refused.
    A second rule for the same calls replaces the first one. A removed rule is restored unchanged.
    """

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
