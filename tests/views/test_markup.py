"""Rules for the markup of every page: nothing inline, nothing external, no references to missing elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from chat.admin_site import GROUPS
from chat.models import ChatMessage, Session, SessionRole, User
from chat.rendering.messages import tool_card
from chat.services.messages.sending import send_message
from chat.services.people import accounts, sharing
from tests.support.testing_node import let_in

pytestmark = pytest.mark.django_db
STATIC = Path(settings.BASE_DIR) / "static"
TEMPLATES = Path(settings.BASE_DIR) / "templates"
Pages = dict[str, str]


@pytest.fixture
def pages(client: Client, ana: User, bo: User, session: Session, said: Callable[[int], list[ChatMessage]]) -> Pages:
    """Every page, in every state that changes its markup."""
    said(60)
    let_in(session, bo, "viewer")
    invitation = reverse("join", args=[sharing.invite(session=session, author=ana, role=SessionRole.VIEWER)[1]])
    address = reverse("session", args=[session.pk])
    found = {
        "sign-in": client.get(reverse("sign-in")),
        "sign-in refused": client.post(reverse("sign-in"), {"username": "x", "password": "y"}),
        "link": client.get(reverse("sign-in-link", args=[accounts.sign_in_link(user=ana)])),
        "link over": client.get(reverse("sign-in-link", args=["x"])),
        "join": client.get(invitation),
        "join refused": client.post(invitation, {"username": "x"}),
        "join over": client.get(reverse("join", args=["x"])),
    }
    client.force_login(bo)
    found |= {"viewer": client.get(address), "join again": client.get(invitation), "404": client.get("/nothing/")}
    found["403"] = client.get(reverse("session-models", args=[session.pk]))
    found["members"] = client.get(reverse("session-share", args=[session.pk]))
    client.force_login(ana)
    send_message(session=session, author=ana, text="Go")
    send_message(session=session, author=ana, text="Queued")
    found |= {
        "session": client.get(address),
        "older": client.get(reverse("session-messages", args=[session.pk]) + "?before=60"),
        "home": client.get(reverse("home")),
        "models": client.get(reverse("session-models", args=[session.pk])),
        "settings": client.get(reverse("settings")),
        "two-step": client.get(reverse("two-step")),
        "confirm": client.get(reverse("confirm")),
        "share": client.get(reverse("session-share", args=[session.pk])),
        "invited": client.post(reverse("session-share-invite", args=[session.pk]), {"role": "viewer"}),
    }
    html = {name: response.content.decode() for name, response in found.items()}
    return {**html, "500": render_to_string("500.html"), "csrf": render_to_string("403_csrf.html")}


class Markup(HTMLParser):
    """A parser that collects the start tags of a page and the text of its scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.inline = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.inline += data.strip() if self.cdata_elem else ""


def all_tags(pages: Pages) -> Iterator[tuple[str, str, dict[str, str]]]:
    for page, html in pages.items():
        for tag, attributes in Markup(html).tags:
            yield page, tag, attributes


def test_no_page_holds_anything_inline(pages: Pages) -> None:
    """Pages allow a strict CSP: there is no inline style or script, style attribute, event handler or eval."""
    bad = [
        (page, tag, name)
        for page, tag, attributes in all_tags(pages)
        for name in (*attributes, *(["<style>"] if tag == "style" else []))
        if name in ("style", "<style>", "hx-on", "hx-vals") or name.startswith(("on", "hx-on:", "x-html"))
    ]
    assert bad == []
    assert [page for page, html in pages.items() if Markup(html).inline] == []


def test_no_page_asks_anybody_else(pages: Pages) -> None:
    """No page loads anything from another site; a link to one sends no referrer."""
    loading = {"src", "srcset", "action", "data", "poster", "hx-get", "hx-post"}
    foreign = [
        (page, tag, value)
        for page, tag, attributes in all_tags(pages)
        for name, value in attributes.items()
        if (name in loading or (name == "href" and tag in ("link", "use", "image"))) and "//" in value
    ]
    assert foreign == []


def test_every_static_file_is_there(pages: Pages) -> None:
    references = {
        value.split("#")[0].removeprefix("/static/")
        for _page, _tag, attributes in all_tags(pages)
        for name, value in attributes.items()
        if name in ("src", "href") and value.startswith("/static/")
    }
    assert {"dist/settings.js", "dist/all.css", "vendor/htmx/htmx.esm.min.js", "icons.svg"} <= references
    assert [path for path in references if finders.find(path) is None] == []


def test_every_icon_is_in_the_sprite() -> None:
    """Every icon that a page uses is in the sprite, because a missing one would leave an empty place."""
    symbols = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    sources = [*TEMPLATES.rglob("*.html"), *(STATIC / "js").rglob("*.js")]
    used = set(re.findall(r'(?:{% icon |\bicon: )"([^"]+)"', "\n".join(path.read_text() for path in sources)))
    used |= {*tool_card._ICONS.values(), *(icon for _label, _name, icons in GROUPS for icon in icons.values())}
    missing = sorted(used - symbols)
    assert not missing, f"static/icons.svg has no such symbols: {', '.join(missing)}"


def test_ids_are_unique_and_labels_lead_to_fields(pages: Pages) -> None:
    """WCAG: each label, description and control refers to an existing element."""
    for page, html in pages.items():
        tags = Markup(html).tags
        ids = [attributes["id"] for _tag, attributes in tags if "id" in attributes]
        assert len(ids) == len(set(ids)), page
        names = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
        wanted = {word for _tag, attributes in tags for name in names for word in attributes.get(name, "").split()}
        elsewhere = {"share-title", *(["w-copy"] if page == "older" else [])}  # in the page that inserts it
        assert wanted - set(ids) <= elsewhere, page


def test_every_control_has_a_name(pages: Pages) -> None:
    """WCAG: fields have a label, buttons a text or a name."""
    for page, html in pages.items():
        labelled = {attributes.get("for") for tag, attributes in Markup(html).tags if tag == "label"}
        for tag, attributes in Markup(html).tags:
            if tag not in ("input", "select", "textarea") or attributes.get("type") in ("hidden", "checkbox"):
                continue
            named = attributes.get("id") in labelled or {"aria-label", "aria-labelledby"} & set(attributes)
            assert named or f"<{tag} dir" in html, (page, tag, attributes)
        for button in re.findall(r"<button[^>]*>(?:(?!</button>).)*</button>", html, re.S):
            name = re.sub(r"<[^>]*>", "", button).strip()
            assert name or "aria-label" in button or "aria-hidden" in button, (page, button)


def test_every_action_in_the_markup_has_its_handler(pages: Pages) -> None:
    """Every data-action has a handler in a script."""
    actions = {attributes["data-action"] for _page, _tag, attributes in all_tags(pages) if "data-action" in attributes}
    scripts = "\n".join(path.read_text() for path in (STATIC / "js").glob("*/*.js"))
    handled = {action for action in actions if re.search(rf'["\n ]{action}["(:=\] ]|data-action={action}\]', scripts)}
    assert actions - handled == set()


def test_vendored_files_are_the_listed_ones() -> None:
    """Vendored files are pinned and unmodified."""
    from hashlib import sha256

    listed = (STATIC / "vendor/VERSIONS.md").read_text()
    files = list((STATIC / "vendor").rglob("*.js"))
    assert len(files) == 3
    assert [path for path in files if sha256(path.read_bytes()).hexdigest() not in listed] == []


def test_answers_carry_the_strict_policy(client: Client) -> None:
    policy = client.get(reverse("sign-in")).headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
