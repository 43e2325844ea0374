"""Make and remove the rules of a workspace for tool calls."""

from __future__ import annotations

from django.core import signing
from django.db import transaction
from django.utils.translation import gettext as _

from agents.approval import MAX_APPROVALS, parse_rule
from chat.access import workspace_where
from chat.errors import Invalid, ServiceError
from chat.models import ApprovalRule, Session, User
from chat.permissions import Permission
from chat.services.people.security_log import Kind, record

SALT = "parley.removed-rule"
UNDO_SECONDS = 3600
MAX_RULES = 200
Verdict = ApprovalRule.Verdict


def rule_columns(rule: str, verdict: str, approvals: int, approvers: str) -> dict[str, str | int]:
    """Return the columns of a rule. Only rules with the verdict "ask" need approvals. Raise Invalid."""
    if verdict not in Verdict.values:
        raise Invalid(_("Choose what happens: ask, always allow, or never allow."))
    if verdict != Verdict.ASK:
        approvals, approvers = 1, ""
    if not 1 <= approvals <= MAX_APPROVALS:
        raise Invalid(_("Choose between 1 and %(most)d approvals.") % {"most": MAX_APPROVALS})
    try:
        parsed = parse_rule(rule, approvals, approvers)
    except ValueError:
        words = _("“%(rule)s” isn’t a valid rule. Enter a tool’s name, or one with a pattern, such as bash(ls *).")
        raise Invalid(words % {"rule": rule[:80]}) from None
    return {"rule": parsed.rule, "verdict": verdict, "approvals": approvals, "approvers": approvers}


@transaction.atomic
def save(
    *, author: User, workspace_id: int, rule: str, verdict: str, approvals: int = 1, approvers: str = ""
) -> ApprovalRule:
    """Make a rule for all agents of a workspace, or change the one with the same text.

    Each session applies it from its next response on. Raise NoSuchWorkspace, Forbidden, and Invalid.
    """
    workspace = workspace_where(author, Permission.MANAGE_RULES, workspace_id)
    values = rule_columns(rule, verdict, approvals, approvers)
    others = ApprovalRule.objects.filter(workspace=workspace).exclude(agent="", rule=values["rule"])
    if others.count() >= MAX_RULES:
        raise Invalid(_("A workspace can have up to %(count)d rules.") % {"count": MAX_RULES})
    row, _is_new = ApprovalRule.objects.update_or_create(
        workspace=workspace, agent="", rule=values.pop("rule"), defaults={**values, "user": author}
    )
    _record(author, row)
    return row


@transaction.atomic
def remove(*, author: User, workspace_id: int, rule_id: int) -> tuple[ApprovalRule, str]:
    """Remove a rule. Return it and a token for `bring_back`, valid for an hour.

    Raise as `save` does, and ServiceError "no_such_rule".
    """
    workspace = workspace_where(author, Permission.MANAGE_RULES, workspace_id)
    row = ApprovalRule.objects.filter(workspace=workspace, pk=rule_id).first()
    if row is None:
        raise ServiceError("no_such_rule", _("This rule has already been removed."))
    kept = [workspace.pk, row.agent, row.rule, row.verdict, row.approvals, row.approvers]
    row.delete()
    _record(author, row, removed=1)
    return row, signing.dumps(kept, salt=SALT)


@transaction.atomic
def bring_back(*, author: User, workspace_id: int, undo: str) -> ApprovalRule:
    """Undo a removal of the last hour. Raise as `save` does, and ServiceError "too_late"."""
    workspace = workspace_where(author, Permission.MANAGE_RULES, workspace_id)
    try:
        removed_from, agent, rule, verdict, approvals, approvers = signing.loads(undo, salt=SALT, max_age=UNDO_SECONDS)
    except signing.BadSignature:
        removed_from = None
    if removed_from != workspace.pk:
        raise ServiceError("too_late", _("This can’t be undone anymore."))
    values = {"verdict": verdict, "approvals": approvals, "approvers": approvers, "user": author}
    row, _is_new = ApprovalRule.objects.get_or_create(workspace=workspace, agent=agent, rule=rule, defaults=values)
    _record(author, row)
    return row


def allow_always(*, session: Session, author: User, agent: str, tool: str) -> None:
    """Allow a tool for an agent in the session's workspace, in the caller's transaction."""
    values = {"verdict": Verdict.ALLOW, "approvals": 1, "approvers": "", "user": author}
    row, _is_new = ApprovalRule.objects.update_or_create(
        workspace_id=session.workspace_id, agent=agent, rule=tool, defaults=values
    )
    _record(author, row)


@transaction.atomic
def save_for_staff(*, author: User, row: ApprovalRule) -> None:
    """Save a rule that staff have made or changed in the admin, which has validated it."""
    row.user = author
    row.save()
    _record(author, row)


@transaction.atomic
def delete_for_staff(*, author: User, row: ApprovalRule) -> None:
    """Delete a rule in the admin."""
    _record(author, row, removed=1)
    row.delete()


def _record(author: User, row: ApprovalRule, *, removed: int = 0) -> None:
    tool = row.rule.partition("(")[0]
    record(
        Kind.TOOL_RULE_CHANGED,
        actor=author,
        target=row.workspace,
        tool=tool,
        agent=row.agent,
        rule=row.verdict,
        removed=removed,
    )
