"""A subscriber of a session as the hub sees it: user, credential, role, and how it ends."""

from __future__ import annotations

from typing import Literal

from chat.live.credentials import Credential
from chat.models import SessionRole

Protocol = Literal["events", "page", "steps"]

# Close codes (docs/protocol.md).
SIGN_IN_AGAIN = 4401
NO_ACCESS = 4403
NO_SUCH_SESSION = 4404
TOO_SLOW = 4408
TOO_MANY_FRAMES = 4429
BROKEN = 1011
AWAY = 1012
TRY_LATER = 1013


class Subscriber:
    """`face` is what is made for the client, `login` how it was let in, `name` what other users see, `language` its
    language, `role` its last known role. `over_http`: an HTTP answer, which the application ends; servers end sockets.
    """

    over_http = False

    def __init__(
        self,
        face: Protocol,
        *,
        user_id: int,
        login: Credential | None = None,
        name: str = "",
        language: str = "en",
        role: SessionRole | None = None,
    ) -> None:
        self.face = face
        self.user_id = user_id
        self.login = login
        self.name = name
        self.language = language
        self.role = role
        self.closed = False

    def hold(self) -> None:
        """Hold events back until the state before them has been sent."""
        raise NotImplementedError

    def close(self, code: int) -> None:
        """End it at once: nothing more is sent."""
        raise NotImplementedError

    def leave(self) -> None:
        """Stop listening: the client has gone."""
        self.closed = True

    def become(self, role: SessionRole | None) -> None:
        """Follow their role in the session. None: it is none of theirs any more (LIVE-06)."""
        self.role = role
        if role is None:
            self.close(NO_ACCESS)


class Reader(Subscriber):
    """A listener that is only notified of changes and reads them itself, so that nothing piles up for a slow client."""

    over_http = True

    def hold(self) -> None:
        """Do nothing: a reader is sent no events that could pass what it reads."""

    def stir(self, revision: int | None = None) -> None:
        """Take notice that a revision was reached; None: that a text has grown."""
        raise NotImplementedError
