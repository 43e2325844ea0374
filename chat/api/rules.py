"""The rules of a workspace for the tools of its agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.approval import MAX_APPROVALS, Approvers
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
RULE = (
    "The calls to which the rule applies: the name of a tool, or a name with a pattern for the main argument, such as "
    "`bash(git push*)`."
)
APPROVERS = (
    "The lowest role in the workspace whose approvals count, if the verdict is `ask`. Empty: all users who can answer "
    "count."
)


class RuleOut(Schema):
    """A rule for the tool calls of agents.

    If several rules match, `deny` takes precedence over `ask`, and `ask` over `allow`.
    """

    id: int = Field(description="The id of the rule.")
    rule: str = Field(description=RULE)
    agent: str = Field(
        description="The `name` of the agent to which the rule applies. Empty: it applies to all agents."
    )
    verdict: Verdict = Field(
        description="What happens with a call: `allow` runs it, `ask` asks users for an approval, and `deny` refuses "
        "it."
    )
    approvals: int = Field(
        description="The number of different users who must approve a call, if the verdict is `ask`. From 1 to 10."
    )
    approvers: Approvers = Field(description=APPROVERS)


class Rules(Schema):
    """The tool rules of a workspace."""

    rules: list[RuleOut] = Field(description="The rules.")


class RuleIn(Body):
    """A rule to create or change."""

    rule: Annotated[str, Field(max_length=1200, pattern=r"^[^\x00]*$", description=RULE)]
    verdict: Verdict = Field(
        description="What happens with a call: `allow` runs it, `ask` asks users for an approval, and `deny` refuses "
        "it."
    )
    approvals: int = Field(
        1,
        ge=1,
        le=MAX_APPROVALS,
        description="The number of different users who must approve a call, if the verdict is `ask`.",
    )
    approvers: Approvers = Field("", description=APPROVERS)


@router.get("/workspaces/{workspace_id}/rules", response=Rules, operation_id="listRules", summary="List tool rules")
def list_rules(request: ApiRequest, workspace_id: int) -> HttpResponse:
    """List the rules of a workspace for tool calls. Agents can have additional rules in their configuration."""
    workspace = workspace_where(request.user, Permission.SEE_MEMBERS, workspace_id)
    return json_response(request, {"rules": [_rule_json(row) for row in rules_in(workspace)]})


@router.put(
    "/workspaces/{workspace_id}/rules", response=RuleOut, operation_id="setRule", summary="Create or change a tool rule"
)
def set_rule(request: ApiRequest, workspace_id: int, body: RuleIn) -> HttpResponse:
    """Create a rule for all agents of a workspace, or change the rule that has the same text.

    Only owners and admins of the workspace may create or change rules.
    """
    row = workspace_rules.save(author=request.user, workspace_id=workspace_id, **body.model_dump())
    return json_response(request, _rule_json(row))


@router.delete(
    "/workspaces/{workspace_id}/rules/{rule_id}",
    response={204: None},
    operation_id="removeRule",
    summary="Remove a tool rule",
)
def remove_rule(request: ApiRequest, workspace_id: int, rule_id: int) -> HttpResponse:
    """Remove a rule. Only owners and admins of the workspace may remove rules."""
    workspace_rules.remove(author=request.user, workspace_id=workspace_id, rule_id=rule_id)
    return no_content()


def _rule_json(row: ApprovalRule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RuleOut.model_fields}
