"""Who is here, in the forms of both faces (LIVE-05)."""

from __future__ import annotations

from collections.abc import Sequence

from django.template.loader import get_template
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.messages import Json
from chat.live.event_types import PresenceEvent, PresentPerson
from chat.live.presence_tracker import Present

# The number of avatars in the header. Further users are counted.
MOST_FACES = 4
MOST_ON_PHONES = 2


def presence_event(people: Sequence[Present]) -> PresenceEvent:
    present = [PresentPerson(user_id=each.user_id, name=each.name, typing=each.typing) for each in people]
    return PresenceEvent(type="presence", people=present)


def presence_frame(people: Sequence[Present]) -> Json:
    """Make the frame for pages. Whose own typing it is, the page knows."""
    typing = [{"id": person.user_id, "name": person.name} for person in people if person.typing]
    values = {
        "people": people,
        "faces": people[:MOST_FACES],
        "more": max(0, len(people) - MOST_FACES),
        "more_on_phones": max(0, len(people) - MOST_ON_PHONES),
        "words": here_words(people),
    }
    return {"op": "presence", "html": get_template("chat/parts/presence.html").render(values), "typing": typing}


def here_words(people: Sequence[Present]) -> str:
    """Say who is here, in one sentence."""
    names = dict(zip(("first", "second", "third"), (person.name for person in people), strict=False))
    match len(people):
        case 0:
            return _("No one is here")
        case 1:
            return _("Online: %(first)s") % names
        case 2:
            return _("Online: %(first)s and %(second)s") % names
        case 3:
            return _("Online: %(first)s, %(second)s and %(third)s") % names
    rest = len(people) - 2
    words = ngettext(
        "Online: %(first)s, %(second)s and %(count)d other",
        "Online: %(first)s, %(second)s and %(count)d others",
        rest,
    )
    return words % {**names, "count": rest}
