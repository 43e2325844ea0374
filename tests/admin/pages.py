"""Addresses of the admin's pages, and form values as a browser sends them."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup, Tag
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from chat.models import ChatMessage, Session


def page_of(session: Session) -> str:
    return reverse("admin:chat_session_change", args=[quote(session.pk)])


def message_page(row: ChatMessage) -> str:
    return reverse("admin:chat_session_message", args=[row.session_id, row.pk])


def add_page(session: Session) -> str:
    return reverse("admin:chat_session_add_message", args=[session.pk])


def action_page(session: Session) -> str:
    return reverse("admin:chat_session_do", args=[session.pk])


def soup_of(response: Any) -> BeautifulSoup:
    return BeautifulSoup(response.content, "html.parser")


def form_in(response: Any, name: str) -> dict[str, str]:
    """Return what a browser would send for a form: all line ends become CRLF."""
    form = soup_of(response).find("form", id=name)
    assert form is not None
    return {
        str(field["name"]): _value(field).replace("\r\n", "\n").replace("\n", "\r\n")
        for field in form.find_all(["input", "textarea", "select"])
        if _is_sent(field)
    }


def _is_sent(field: Tag) -> bool:
    is_off = field.get("type") == "checkbox" and not field.has_attr("checked")
    return not (is_off or field.has_attr("disabled") or field.get("type") == "submit")


def _value(field: Tag) -> str:
    if field.name == "select":
        options = field.find_all("option")
        # A field that fetches its options, as for a user, has none while it is empty.
        return (
            str(next((each for each in options if each.has_attr("selected")), options[0])["value"]) if options else ""
        )
    if field.name == "textarea":  # its text begins after the newline that follows the tag
        return field.get_text().removeprefix("\n")
    return str(field.get("value", "on" if field.get("type") == "checkbox" else ""))


def do(client: Client, session: Session, action: str, row: ChatMessage | None = None, **more: str) -> Any:
    """Press an action button."""
    return client.post(action_page(session), {"action": f"{action} {row.pk}" if row else action, **more})


def said(response: Any) -> str:
    """Return the whole text of a page."""
    return " ".join(soup_of(response).get_text(" ").split())
