"""The rules of a workspace for the tools of its agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.approval import MOST_APPROVALS
from chat.access import workspace_where
from chat.api.auth import ApiRequest
from chat.api.parsing import Body
from chat.api.responses import json_response, no_content
from chat.models import ApprovalRule
from chat.permissions import Permission
from chat.queries.workspace_rules import rules_in
from chat.services.people import workspace_rules

router = Router(tags=["Workspaces"])
Verdict = Literal["allow", "ask", "deny"]
Approvers = Literal["", "admin", "owner"]
RULE = "A tool's name, or one with a pattern, as in `bash(git push*)`"
APPROVERS = "With `ask`: the least role of those who count; empty: all who can answer"


class RuleOut(Schema):
    """What happens when an agent calls a tool. The strictest rule that matches a call decides."""

    id: int
    rule: str = Field(description=RULE)
    agent: str = Field(description="The name of the agent that it is for; empty: all agents")
    verdict: Verdict
    approvals: int = Field(description="How many different people have to approve")
    approvers: Approvers = Field(description=APPROVERS)


class Rules(Schema):
    rules: list[RuleOut]


class RuleIn(Body):
    rule: Annotated[str, Field(max_length=1200, pattern=r"^[^\x00]*$", description=RULE)]
    verdict: Verdict = Field(description="Ask people, allow the calls without asking, or refuse them")
    approvals: int = Field(
        1, ge=1, le=MOST_APPROVALS, description="With `ask`: how many different people have to approve"
    )
    approvers: Approvers = Field("", description=APPROVERS)


@router.get("/workspaces/{workspace_id}/rules", response=Rules, operation_id="listRules", summary="List tool rules")
def list_rules(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """The rules of a workspace for the tools of its agents. Agents have rules of their own, too."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    return json_response(request, {"rules": [_told(row) for row in rules_in(workspace)]})


@router.put(
    "/workspaces/{workspace_id}/rules", response=RuleOut, operation_id="setRule", summary="Make or change a tool rule"
)
def set_rule(request: ApiRequest, workspace_id: int, body: RuleIn) -> HttpResponse:
    """For all agents of the workspace; a rule with the same text is changed. Only owners and admins may."""
    row = workspace_rules.save(author=request.user, workspace_id=workspace_id, **body.model_dump())
    return json_response(request, _told(row))


@router.delete(
    "/workspaces/{workspace_id}/rules/{rule_id}",
    response={204: None},
    operation_id="removeRule",
    summary="Remove a tool rule",
)
def remove_rule(request: ApiRequest, workspace_id: int, rule_id: int) -> HttpResponse:
    """Only owners and admins may."""
    workspace_rules.remove(author=request.user, workspace_id=workspace_id, rule_id=rule_id)
    return no_content()


def _told(row: ApprovalRule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RuleOut.model_fields}
