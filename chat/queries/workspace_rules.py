"""The rules of a workspace for tool calls: as rows, and combined with those of an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from django.db.models import QuerySet

from agents.approval import Approvers, Guard, Requirement, Rules
from chat.models import ApprovalRule, Session, Workspace

Verdict = ApprovalRule.Verdict


def added(rules: Rules, session: Session, agent: str) -> Rules:
    """Return the rules of an agent of a session with those of its workspace. One query.

    What people have always allowed for the agent counts as approved in advance, the workspace's other rules as the
    agent's own: the strongest one decides.
    """
    rows = ApprovalRule.objects.filter(workspace=session.workspace_id, agent__in=("", agent))
    for row in rows.order_by("pk"):
        needs = Requirement(row.approvals, cast("Approvers", row.approvers))
        if row.verdict == Verdict.DENY:
            rules = replace(rules, deny=(*rules.deny, row.rule))
        elif row.verdict == Verdict.ASK and needs.is_plain:
            rules = replace(rules, ask=(*rules.ask, row.rule))
        elif row.verdict == Verdict.ASK:
            rules = replace(rules, guarded=(*rules.guarded, Guard(row.rule, needs)))
        elif row.agent:
            rules = replace(rules, approved=(*rules.approved, row.rule))
        else:
            rules = replace(rules, allow=(*rules.allow, row.rule))
    return rules


def rules_in(workspace: Workspace) -> QuerySet[ApprovalRule]:
    """Return the rules of a workspace, those for all agents first, with who made them."""
    return ApprovalRule.objects.filter(workspace=workspace).select_related("user").order_by("agent", "rule", "pk")
