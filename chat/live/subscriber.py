"""A subscriber of a session as the hub sees it, with its user, credential and role."""

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
    """One client of a session: a socket or an HTTP response.

    `protocol` decides which frames it gets, `credential` is how it signed in, `name` is what other users see, and
    `role` is its last known role. `over_http`: it is an HTTP response, which the application must end. Servers end
    sockets.
    """

    over_http = False
    # The id of the session that it is subscribed to; "" for pages without a session.
    session_id = ""

    def __init__(
        self,
        protocol: Protocol,
        *,
        user_id: int,
        credential: Credential | None = None,
        name: str = "",
        language: str = "en",
        role: SessionRole | None = None,
    ) -> None:
        self.protocol = protocol
        self.user_id = user_id
        self.credential = credential
        self.name = name
        self.language = language
        self.role = role
        self.closed = False
        self.lost_access = False

    def pause(self) -> None:
        """Hold events back until the state before them has been sent."""
        raise NotImplementedError

    def close(self, code: int) -> None:
        """Close the connection immediately. Nothing more is sent."""
        raise NotImplementedError

    def leave(self) -> None:
        """Unsubscribe, because the client disconnected."""
        self.closed = True

    def set_role(self, role: SessionRole | None) -> None:
        """Set the user's role in the session. With None, close the connection, because access was lost (LIVE-06)."""
        self.role = role
        if role is None:
            self.lost_access = True
            self.close(NO_ACCESS)


class Reader(Subscriber):
    """A subscriber that is notified of changes and reads them itself, so that nothing is queued for a slow client."""

    over_http = True

    def pause(self) -> None:
        """Do nothing, because a reader is sent no events that could overtake what it reads."""

    def notify(self, revision: int | None = None) -> None:
        """Note that a revision was reached or the agent's status has changed, or that a text has grown (None)."""
        raise NotImplementedError
