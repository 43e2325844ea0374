"""The settings of a workspace: its name, its members, the rules for its agents’ tools, and its usage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.approval import MAX_APPROVALS
from chat.access import may
from chat.agents_setup import registry
from chat.errors import Forbidden, ServiceError
from chat.models import ApprovalRule, Membership, Workspace
from chat.permissions import PERMISSIONS, Permission
from chat.queries.memory import kept_and_removed
from chat.queries.workspace_rules import rules_in
from chat.queries.workspace_usage import usage_by_owner
from chat.services.people import members, memory, workspace_invitations, workspaces
from chat.services.people import workspace_rules as rules
from chat.services.people.sharing import USES
from chat.views.profile_pictures import picture_url
from chat.views.requests import SignedInRequest, absolute, number, workspace_page

Verdict = ApprovalRule.Verdict


@workspace_page(Permission.SEE_MEMBERS)
def workspace_settings(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show a workspace to its members, or handle the form named by `part`."""
    if request.method == "GET":
        return _page(request, workspace)
    part = request.POST.get("part", "")
    try:
        if part == "invite":
            return _invite(request, workspace)
        if part in PARTS:
            PARTS[part](request, workspace)
    except ServiceError as refused:
        status = 403 if isinstance(refused, Forbidden) else 422
        stale_note = number(request.POST.get("note_id", "")) if refused.code == "stale" else None
        problem = {part.replace("-", "_"): refused.message}
        return _page(request, workspace, problem, stale_note=stale_note, status=status)
    is_in = may(request.user, Permission.SEE_MEMBERS, workspace.pk)
    return redirect("workspace-settings", workspace.pk) if is_in else redirect("home")


def _rename(request: SignedInRequest, workspace: Workspace) -> None:
    given = request.POST
    workspaces.rename(
        author=request.user, workspace_id=workspace.pk, name=given.get("name", ""), seen=given.get("version")
    )
    messages.success(request, _("Saved."))


def _change_role(request: SignedInRequest, workspace: Workspace) -> None:
    who, role = number(request.POST.get("user_id", "")) or 0, request.POST.get("role", "")
    changed = members.change_role(author=request.user, workspace_id=workspace.pk, user_id=who, role=role)
    words = _("The role of %(name)s is now: %(role)s")
    messages.success(request, words % {"name": changed.user.sender, "role": Membership.Role(changed.role).label})


def _remove(request: SignedInRequest, workspace: Workspace) -> None:
    who = number(request.POST.get("user_id", "")) or 0
    removed = members.remove(author=request.user, workspace_id=workspace.pk, user_id=who)
    if who == request.user.pk:
        messages.success(request, _("You have left “%(workspace)s”.") % {"workspace": workspace.name})
    else:
        undo = f"bring-back {removed.undo}" if removed.undo else ""
        words = _("%(name)s was removed.")
        if removed.links:
            words = ngettext(
                "%(name)s was removed. %(count)d invitation link was revoked.",
                "%(name)s was removed. %(count)d invitation links were revoked.",
                removed.links,
            )
        values = {"name": removed.user.sender, "count": removed.links}
        messages.success(request, words % values, extra_tags=undo)


def _invite(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Create an invitation link. It is shown only in this response."""
    uses = number(request.POST.get("uses", "1")) or 0
    made, token = workspace_invitations.invite(author=request.user, workspace_id=workspace.pk, uses=uses)
    return _page(request, workspace, made={"link": absolute(request, reverse("join", args=[token])), "row": made})


def _end_invitation(request: SignedInRequest, workspace: Workspace) -> None:
    which = number(request.POST.get("invitation", "")) or 0
    workspace_invitations.end_invitation(author=request.user, workspace_id=workspace.pk, invitation_id=which)
    messages.success(request, _("This link no longer works."))


def _bring_back(request: SignedInRequest, workspace: Workspace) -> None:
    back = members.bring_back(author=request.user, workspace_id=workspace.pk, undo=request.POST.get("undo", ""))
    messages.success(request, _("%(name)s is a member again.") % {"name": back.user.sender})


def _save_rule(request: SignedInRequest, workspace: Workspace) -> None:
    given = request.POST
    saved = rules.save(
        author=request.user,
        workspace_id=workspace.pk,
        rule=given.get("rule", ""),
        verdict=given.get("verdict", ""),
        approvals=number(given.get("approvals", "")) or 0,
        approvers=given.get("approvers", ""),
    )
    messages.success(request, _("Rule for “%(rule)s” saved.") % {"rule": saved.rule})


def _remove_rule(request: SignedInRequest, workspace: Workspace) -> None:
    rule_id = number(request.POST.get("rule_id", "")) or 0
    removed, undo = rules.remove(author=request.user, workspace_id=workspace.pk, rule_id=rule_id)
    words = _("Rule for “%(rule)s” removed.") % {"rule": removed.rule}
    messages.success(request, words, extra_tags=f"bring-rule-back {undo}")


def _bring_rule_back(request: SignedInRequest, workspace: Workspace) -> None:
    back = rules.bring_back(author=request.user, workspace_id=workspace.pk, undo=request.POST.get("undo", ""))
    messages.success(request, _("Rule for “%(rule)s” saved.") % {"rule": back.rule})


def _notes(request: SignedInRequest, workspace: Workspace) -> None:
    """Add, accept, edit, remove or restore a note of the workspace."""
    act, text = request.POST.get("act", ""), request.POST.get("text", "")
    if act == "add":
        made = memory.keep_ours(author=request.user, workspace_id=workspace.pk, text=text)
        messages.success(request, _("Note added.") if made.accepted else _("Note proposed."))
        return
    note_id = number(request.POST.get("note_id", "")) or 0
    seen = request.POST.get("version")
    memory.change_ours(author=request.user, workspace_id=workspace.pk, note_id=note_id, act=act, text=text, seen=seen)
    messages.success(request, _("Note removed. You can restore it below.") if act == "remove" else _("Saved."))


PARTS: dict[str, Callable[[SignedInRequest, Workspace], None]] = {
    "name": _rename,
    "role": _change_role,
    "remove": _remove,
    "bring-back": _bring_back,
    "end-invitation": _end_invitation,
    "rule": _save_rule,
    "remove-rule": _remove_rule,
    "bring-rule-back": _bring_rule_back,
    "notes": _notes,
}


def _page(
    request: SignedInRequest,
    workspace: Workspace,
    refused: dict[str, str] | None = None,
    made: dict[str, Any] | None = None,
    stale_note: int | None = None,
    status: int = 200,
) -> HttpResponse:
    found = workspaces.members_of(request.user, workspace.pk)
    mine = next(each for each in found if each.user_id == request.user.pk)
    granted = PERMISSIONS[mine.role]
    notes, removed = kept_and_removed(workspace=workspace)
    values = {
        "workspace": workspace,
        "may": {permission.value: True for permission in granted},
        "my_role": Membership.Role(mine.role).label,
        "people": [_person(each, mine) for each in found],
        "roles": [(role, Membership.Role(role).label) for role in members.given_roles(mine.role)],
        "invitations": workspace_invitations.invitations(workspace) if Permission.MANAGE_MEMBERS in granted else [],
        "uses": USES,
        "member_role": Membership.Role.MEMBER.label,
        "made": made,
        "usage": usage_by_owner(workspace) if Permission.SEE_USAGE in granted else [],
        "rules": rules_in(workspace),
        "verdicts": [(each.value, each.label) for each in (Verdict.ASK, Verdict.ALLOW, Verdict.DENY)],
        "approvers": ApprovalRule.Approvers.choices,
        "most_approvals": MAX_APPROVALS,
        "tools": registry().tool_names(),
        "example": "bash(git push*)",
        "longest_name": workspaces.MAX_NAME_LENGTH,
        "asked": request.POST if refused else {},
        "notes": notes,
        "stale_note": stale_note,
        "removed_notes": removed if Permission.MANAGE_NOTES in granted else (),
        "refused": refused or {},
    }
    return render(request, "workspace/page.html", values, status=status)


def _person(each: Membership, mine: Membership) -> dict[str, Any]:
    """Return a member for the template. `can_change`: the user may change their role or remove them."""
    is_manager = Permission.MANAGE_MEMBERS in PERMISSIONS[mine.role]
    outranks = mine.role == Membership.Role.OWNER or each.role != Membership.Role.OWNER
    return {
        "membership": each,
        "picture": picture_url(each.user),
        "role": Membership.Role(each.role).label,
        "is_me": each.pk == mine.pk,
        "can_change": is_manager and outranks,
    }
