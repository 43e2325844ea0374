"""What templates of Parley need beyond Django's: icons and figures."""

from __future__ import annotations

from functools import cache

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chat.rendering import figures

register = template.Library()
register.filter("duration", figures.duration)
register.filter("spelled_duration", figures.spelled_duration)
register.filter("tokens", figures.tokens)
register.filter("initials", figures.initials)
register.filter("colour", figures.colour)


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of static/icons.svg; the words beside it say what it means."""
    return _icon(name)


@cache
def _icon(name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name)
