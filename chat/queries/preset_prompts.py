"""Opening prompts of an agent as lines of a form: the text, or `icon | heading | text`."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from agents.config import PromptIcon
from agents.registry import Prompt
from chat.errors import Invalid
from chat.queries.agent_icons import ICON_NAMES, ICONS

MAX_PROMPT_LENGTH = 500
MAX_PROMPTS = 12


def line_of(prompt: Prompt) -> str:
    """Return a prompt as a line, with the name of its icon in the active language."""
    if isinstance(prompt.to_json(), str):
        return str(prompt)
    return f"{ICON_NAMES.get(prompt.icon, prompt.icon)} | {prompt.heading} | {prompt}"


def prompts_from(text: str) -> list[Prompt]:
    """Parse the lines of a field, without empty ones. Raise Invalid, with the number of the line."""
    return [_prompt_from(line.strip(), number) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def _prompt_from(line: str, number: int) -> Prompt:
    *shown, text = (part.strip() for part in line.split(" | ", 2))
    if len(shown) < 2:
        return Prompt(line)
    name, heading = shown
    icon = _icon_named(name)
    if icon is None:
        message = _("Line %(number)d: there is no icon “%(name)s”. Choose one of: %(known)s.")
        known = ", ".join(str(ICON_NAMES[each]) for each in ICONS)
        raise Invalid(message % {"number": number, "name": name[:80], "known": known})
    return Prompt(text, heading, icon)


def _icon_named(name: str) -> PromptIcon | None:
    """Return an icon by its name in the active language, in English, or in the configuration file, or None."""
    wanted = " ".join(name.split()).casefold()
    for language in (get_language(), "en"):
        with override(language):
            for icon in ICONS:
                if wanted in (icon, str(ICON_NAMES[icon]).casefold()):
                    return icon
    return None


def check_prompts(prompts: Sequence[Prompt]) -> None:
    """Check the number of prompts and their lengths. Raise Invalid."""
    if len(prompts) > MAX_PROMPTS or any(len(each) + len(each.heading) > MAX_PROMPT_LENGTH for each in prompts):
        message = _("At most %(count)s prompts of at most %(length)s characters each.")
        raise Invalid(message % {"count": MAX_PROMPTS, "length": MAX_PROMPT_LENGTH})
