"""Opening prompts of an agent as lines of a form: the text, or `icon | heading | text`."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from agents.registry import Prompt
from chat.errors import Invalid
from chat.queries.agent_icons import ICONS

MAX_PROMPT_LENGTH = 500
MAX_PROMPTS = 12


def line_of(prompt: Prompt) -> str:
    """Write a prompt as a line."""
    return str(prompt) if isinstance(prompt.to_json(), str) else f"{prompt.icon} | {prompt.heading} | {prompt}"


def prompt_from(line: str) -> Prompt:
    """Read a line. Raises Invalid for an unknown icon."""
    *shown, text = (part.strip() for part in line.split(" | ", 2))
    if len(shown) < 2:
        return Prompt(line)
    icon, heading = shown
    if icon not in ICONS:
        message = _("“%(name)s” is not an icon. Write “icon | heading | text”, with one of the icons below.")
        raise Invalid(message % {"name": icon})
    return Prompt(text, heading, icon)


def check_prompts(prompts: Sequence[Prompt]) -> None:
    """Check the number of prompts and their lengths. Raises Invalid."""
    if len(prompts) > MAX_PROMPTS or any(len(each) + len(each.heading) > MAX_PROMPT_LENGTH for each in prompts):
        message = _("At most %(count)s prompts of at most %(length)s characters each.")
        raise Invalid(message % {"count": MAX_PROMPTS, "length": MAX_PROMPT_LENGTH})
