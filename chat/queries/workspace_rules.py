"""The rules of a workspace for tool calls: as rows, and combined with those of an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from django.db.models import QuerySet

from agents.approval import Approvers, ParsedRule, Requirement, Rules
from chat.models import ApprovalRule, Session, Workspace

Verdict = ApprovalRule.Verdict


def with_workspace_rules(rules: Rules, session: Session, agent: str) -> Rules:
    """Return the rules of an agent of a session combined with those of its workspace. One query.

    Rules that always allow a tool for this agent count as approvals in advance. The workspace's other rules count as
    the agent's own, of which the strongest one decides.
    """
    rows = ApprovalRule.objects.filter(workspace=session.workspace_id, agent__in=("", agent))
    for row in rows.order_by("pk"):
        needs = Requirement(row.approvals, cast("Approvers", row.approvers))
        if row.verdict == Verdict.DENY:
            rules = replace(rules, deny=(*rules.deny, row.rule))
        elif row.verdict == Verdict.ASK and needs.is_plain:
            rules = replace(rules, ask=(*rules.ask, row.rule))
        elif row.verdict == Verdict.ASK:
            rules = replace(rules, guarded=(*rules.guarded, ParsedRule(row.rule, needs)))
        elif row.agent:
            rules = replace(rules, approved=(*rules.approved, row.rule))
        else:
            rules = replace(rules, allow=(*rules.allow, row.rule))
    return rules


def rules_in(workspace: Workspace) -> QuerySet[ApprovalRule]:
    """Return the rules of a workspace with the users who made them, rules for all agents first."""
    return ApprovalRule.objects.filter(workspace=workspace).select_related("user").order_by("agent", "rule", "pk")
