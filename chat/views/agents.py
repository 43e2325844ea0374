"""The pages of the agents that members of a workspace make: their list, and the form of one agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents.registry import Prompt
from chat.access import agent_to_change, workspace_where
from chat.agents_setup import registry
from chat.commands import MAX_SYSTEM_PROMPT_LENGTH
from chat.errors import Invalid, ServiceError
from chat.models import AgentPreset, User, Workspace
from chat.permissions import Permission
from chat.queries import presets
from chat.queries.agent_icons import ICON_NAMES, ICONS
from chat.queries.members_agents import SeenAgent, seen_agents
from chat.queries.preset_prompts import check_prompts, line_of, prompts_from
from chat.rendering.text.tool_texts import entry_text, grouped
from chat.services.people import members_agents as service
from chat.services.people.members_agents import MAX_TITLE_LENGTH, USUAL_ICON, AgentSettings
from chat.views.requests import SignedInRequest, number, number_or_404, signed_in, workspace_page

# Not autocomplete="off": browsers would empty the fields when the user comes back by the Back button.
INPUT = {"class": "input", "dir": "auto"}


class AgentForm(forms.Form):
    """The form of an agent. The service validates the values."""

    title = forms.CharField(
        label=gettext_lazy("Name"), max_length=MAX_TITLE_LENGTH, widget=forms.TextInput({**INPUT, "autofocus": True})
    )
    icon = forms.ChoiceField(label=gettext_lazy("Icon"), choices=[(name, name) for name in ICONS])
    model = forms.CharField(label=gettext_lazy("Model"), required=False, max_length=281)
    system_prompt = forms.CharField(
        label=gettext_lazy("System prompt"),
        required=False,
        strip=False,
        max_length=MAX_SYSTEM_PROMPT_LENGTH,
        widget=forms.Textarea({**INPUT, "rows": 10}),
        help_text=gettext_lazy("What the agent should do, know and avoid. It gets this before every answer."),
    )
    tools = forms.MultipleChoiceField(label=gettext_lazy("Tools"), required=False)
    prompts = forms.CharField(
        label=gettext_lazy("Opening prompts"),
        required=False,
        widget=forms.Textarea({**INPUT, "rows": 4}),
        help_text=gettext_lazy(
            "Suggestions for the first message, one per line. For an icon and a heading, write "
            "“icon | heading | text”: choose an icon below to begin such a line."
        ),
    )

    def __init__(self, *args: Any, tools: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tools"].choices = tools  # type: ignore[attr-defined]  # a MultipleChoiceField

    def clean_prompts(self) -> list[Prompt]:
        try:
            prompts = prompts_from(self.cleaned_data["prompts"])
            check_prompts(prompts)
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from refused
        return prompts

    def settings(self) -> AgentSettings:
        """Return the values for the service. Raise Invalid with the first error."""
        if not self.is_valid():
            # Without autofocus on the title, the page focuses the first invalid field.
            self.fields["title"].widget.attrs.pop("autofocus", None)
            field, errors = next(iter(self.errors.items()))
            sentence = f"{self.fields[field].label}: {errors[0]}"
            raise Invalid(sentence)
        given = {**self.cleaned_data, "system_prompt": self.cleaned_data["system_prompt"].replace("\r\n", "\n")}
        return AgentSettings(**given)

    def shows_errors(self) -> bool:
        """Return whether the page shows all errors of the form at their fields."""
        return bool(self.errors) and not set(self.errors) & {"icon", "model", "tools"}


@workspace_page(Permission.MAKE_AGENTS)
def agents(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show the agents of a workspace, or run the action `part` on one of them."""
    refused = ""
    if request.method == "POST":
        try:
            return _change(request, workspace, request.POST.get("part", ""))
        except ServiceError as error:
            if error.code == "forbidden":
                raise
            refused = error.message
    seen = seen_agents(request.user, workspace.pk)
    values = {
        "workspace": workspace,
        "mine": _rows([each for each in seen if each.is_mine and not each.row.archived_at]),
        "shared": _rows([each for each in seen if not each.is_mine and not each.row.archived_at]),
        "archived": _rows([each for each in seen if each.row.archived_at]),
        "offered": presets.presets(),
        "refused": refused,
    }
    return render(request, "workspace/agents.html", values, status=422 if refused else 200)


@workspace_page(Permission.MAKE_AGENTS)
def new_agent(request: SignedInRequest, workspace: Workspace) -> HttpResponse:
    """Show an empty form, or create an agent with its values."""
    choices = _tools(workspace.pk, ())
    if request.method == "GET":
        initial = {"icon": USUAL_ICON, "tools": _usual_tools(dict(choices))}
        return _form(request, workspace, AgentForm(initial=initial, tools=choices))
    form = AgentForm(request.POST, tools=choices)
    try:
        row = service.make(author=request.user, workspace_id=workspace.pk, given=form.settings())
    except ServiceError as refused:
        return _form(request, workspace, form, refused=refused)
    messages.success(request, _("Agent “%(name)s” created. Only you can see it until you share it.") % {"name": row})
    return redirect("workspace-agents", workspace.pk)


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def agent(request: SignedInRequest, workspace_id: str, name: str) -> HttpResponse:
    """Show the form of an agent to users who may change it, or save its values."""
    row = agent_to_change(request.user, number_or_404(workspace_id), name)
    workspace = workspace_where(request.user, Permission.MAKE_AGENTS, row.workspace_id)
    choices = _tools(workspace.pk, row.tools)
    if request.method == "GET":
        return _form(request, workspace, AgentForm(initial=_values(row), tools=choices), row)
    form = AgentForm(request.POST, tools=choices)
    seen = number(request.POST.get("revision", ""))
    replaced = number(request.POST.get("replace", ""))  # the revision that the user has decided to overwrite
    try:
        service.change(
            author=request.user, workspace_id=workspace.pk, name=name, given=form.settings(), revision=replaced or seen
        )
    except ServiceError as refused:
        return _form(request, workspace, form, row, refused, seen)
    messages.success(request, _("Agent “%(name)s” saved. New sessions use it.") % {"name": form.cleaned_data["title"]})
    return redirect("workspace-agents", workspace.pk)


def _change(request: SignedInRequest, workspace: Workspace, part: str) -> HttpResponse:
    name = request.POST.get("agent") or request.POST.get("undo", "")
    if part == "copy":
        row = service.copy(author=request.user, workspace_id=workspace.pk, name=name)
        messages.success(request, _("This is your copy. Only you can see it until you share it."))
        return redirect("workspace-agent", workspace.pk, row.name)
    if part not in PARTS:
        raise Invalid(_("That’s not one of the options."))
    confirmation, undo = PARTS[part](request, workspace.pk, name)
    messages.success(request, confirmation, extra_tags=f"{undo} {name}" if undo else "")
    return redirect("workspace-agents", workspace.pk)


def _share(request: SignedInRequest, workspace_id: int, name: str) -> tuple[str, str]:
    row = service.share(author=request.user, workspace_id=workspace_id, name=name, shared=True)
    return _("Everyone in the workspace can now use “%(name)s”.") % {"name": row}, "unshare"


def _unshare(request: SignedInRequest, workspace_id: int, name: str) -> tuple[str, str]:
    row = service.share(author=request.user, workspace_id=workspace_id, name=name, shared=False)
    return _("Only its creator can use “%(name)s” now. Sessions that use it keep it.") % {"name": row}, ""


def _archive(request: SignedInRequest, workspace_id: int, name: str) -> tuple[str, str]:
    row = service.archive(author=request.user, workspace_id=workspace_id, name=name, archived=True)
    return _("“%(name)s” archived. Sessions that use it keep it.") % {"name": row}, "restore"


def _restore(request: SignedInRequest, workspace_id: int, name: str) -> tuple[str, str]:
    row = service.archive(author=request.user, workspace_id=workspace_id, name=name, archived=False)
    return _("“%(name)s” restored.") % {"name": row}, ""


PARTS: dict[str, Callable[[SignedInRequest, int, str], tuple[str, str]]] = {
    "share": _share,
    "unshare": _unshare,
    "archive": _archive,
    "restore": _restore,
}


def _rows(found: list[SeenAgent]) -> list[dict[str, Any]]:
    return [
        {
            "row": each.row,
            "may_change": each.may_change,
            "is_mine": each.is_mine,
            "model": presets.of_row(each.row).model,
            "tools": len(each.row.tools),
        }
        for each in found
    ]


def _form(
    request: SignedInRequest,
    workspace: Workspace,
    form: AgentForm,
    row: AgentPreset | None = None,
    refused: ServiceError | None = None,
    seen: int | None = None,
) -> HttpResponse:
    """Render the form of an agent, with the error if it was refused. `seen` is the revision that the user edited."""
    values = {
        "workspace": workspace,
        "form": form,
        "row": row,
        "icons": [(name, ICON_NAMES.get(name, name)) for name in ICONS],
        "tools": _tool_groups(request.user, workspace.pk, dict(form.fields["tools"].choices)),  # type: ignore[attr-defined]
        "models": _models(str(form["model"].value() or "")),
        "refused": refused.message if refused and not form.shows_errors() else "",
        "revision": seen or (row.revision if row else None),
        "newer": refused.details.get("revision") if refused else None,
    }
    return render(request, "workspace/agent.html", values, status=422 if refused else 200)


def _models(present: str) -> list[str]:
    """Return the models to choose from. The present one is included even if it is no longer offered."""
    known = [f"{choice.provider}/{choice.model}" for choice in registry().known_models() if choice.model]
    return known if not present or present in known else [present, *known]


def _tools(workspace_id: int, present: Any) -> list[tuple[str, str]]:
    """Return the tools to choose from as (name, description)."""
    names = sorted(service.allowed_tools(workspace_id) | set(present))
    return [(name, entry_text(name, registry().tool(name))) for name in names]


def _tool_groups(user: User, workspace_id: int, abouts: dict[str, str]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the tools by heading, each as (name, display name, description)."""
    titles = {each.name: each.title for each in presets.presets(user, workspace_id)}
    return [
        (label, [(name, title, abouts[name]) for name, title in entries]) for label, entries in grouped(abouts, titles)
    ]


def _usual_tools(choices: dict[str, str]) -> list[str]:
    """Return the tools of a new agent: the read-only tools of the default agent."""
    known = [(name, registry().tool(name)) for name in presets.presets()[0].tools if name in choices]
    return [name for name, tool in known if tool and tool.changes_nothing]


def _values(row: AgentPreset) -> dict[str, Any]:
    prompts = "\n".join(line_of(each) for each in presets.prompts_of(row.prompts))
    names = ("title", "model", "system_prompt", "tools")
    return {**{name: getattr(row, name) for name in names}, "icon": row.icon or USUAL_ICON, "prompts": prompts}
