"""The form of a workspace in the admin."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Workspace
from tests.admin.pages import form_in

pytestmark = pytest.mark.django_db


def test_form_does_not_replace_a_newer_name_unseen(admin_client: Client, workspace: Workspace) -> None:
    """ADM-01: the workspace has been renamed since staff opened the form. Saving again replaces the new name."""
    page = reverse("admin:chat_workspace_change", args=[workspace.pk])
    form = form_in(admin_client.get(page), "workspace_form") | {"name": "Ours"}
    Workspace.objects.filter(pk=workspace.pk).update(name="Theirs")
    refused = admin_client.post(page, form)
    assert "This has changed since you opened the form." in refused.content.decode()
    again = form_in(refused, "workspace_form")
    assert again["name"] == "Ours"
    workspace.refresh_from_db()
    assert workspace.name == "Theirs"
    assert admin_client.post(page, again).status_code == 302
    workspace.refresh_from_db()
    assert workspace.name == "Ours"
