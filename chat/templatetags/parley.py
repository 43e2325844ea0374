"""Template tags and filters: icons, style sheets, scripts, numbers, times."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from django import template
from django.contrib.admin.models import LogEntry
from django.template import Context
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from chat.access import may_open_in_admin
from chat.assets.built import built_file
from chat.assets.static_files import Storage
from chat.caches import cached_unless_debug
from chat.models import User
from chat.rendering.messages.attachments import split_files
from chat.rendering.session_rows import row_html
from chat.rendering.text import formatting
from chat.security import web_push
from chat.security.session_store import PUSH, PUSH_KEY

register = template.Library()
register.filter("moment", formatting.moment)
register.filter("host", formatting.host)
register.filter("duration", formatting.duration)
register.filter("spelled_duration", formatting.spelled_duration)
register.filter("time_left", formatting.time_left)
register.filter("tokens", formatting.tokens)
register.filter("count", formatting.count)
register.filter("money", formatting.money)
register.filter("window", formatting.window)
register.filter("level", formatting.effort_level)
register.filter("initials", formatting.initials)
register.filter("agent_initials", formatting.agent_initials)
register.filter("color", formatting.color)


register.simple_tag(split_files)
register.simple_tag(row_html, name="session_row")


@register.filter
def instant(text: str) -> datetime:
    """Parse a time that is stored in JSON, in ISO 8601."""
    return datetime.fromisoformat(text)


@register.filter
def opens_for(entry: LogEntry, user: User) -> bool:
    """Return whether a user may open the page of a log entry's object in the admin."""
    model = entry.content_type.model_class() if entry.content_type else None
    return model is not None and bool(entry.get_admin_url()) and may_open_in_admin(user, model)


@register.simple_tag
def gap() -> str:
    """Return the separator between two sentences: a space, or nothing in Chinese."""
    return "" if (get_language() or "").startswith("zh") else " "


@register.simple_tag
def constant(name: str) -> SafeString:
    """Include a template that has no variables. It is rendered once per language and cached."""
    return _constant(name, get_language(), Storage.version)


@register.simple_tag
def icon(name: str) -> SafeString:
    """Render an icon of static/icons.svg, hidden from screen readers."""
    return _icon(name)


@register.simple_tag
def stylesheet(name: str, media: str = "") -> SafeString:
    """Render a link to a style sheet of static/, including the style sheets that it imports."""
    condition = format_html(' media="{}"', media) if media else ""
    return format_html('<link rel="stylesheet" href="{}"{}>', static(built_file(name).file), condition)


@register.simple_tag(takes_context=True)
def push_digest(context: Context) -> str:
    """Return the digest of this login's push subscription, or "" without one or if it was made with another key."""
    session = context["request"].session
    return str(session.get(PUSH, "")) if session.get(PUSH_KEY) == web_push.key_id() else ""


@register.simple_tag
def script(name: str) -> SafeString:
    """Render a `<script>` for a script of static/ that is not a module."""
    return format_html('<script src="{}"></script>', static(built_file(name).file))


@register.simple_tag
def module(name: str) -> SafeString:
    """Render a `<script>` for a module of static/, with preloads of all modules that it imports."""
    file, imports = built_file(name)
    preloads = format_html_join("", '<link rel="modulepreload" href="{}">\n', ((static(path),) for path in imports))
    return format_html('{}<script type="module" src="{}"></script>', preloads, static(file))


@register.simple_tag
def page_script(name: str) -> SafeString:
    """Render a page's module, and before it a script that queues user actions until the module runs."""
    return format_html("{}\n{}", script("js/pages/early.js"), module(name))


@cached_unless_debug
def _constant(name: str, language: str | None, static_version: str) -> SafeString:
    return mark_safe(render_to_string(name))  # noqa: S308  # a template


@cache
def _icon(name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name)
