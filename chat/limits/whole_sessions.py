"""Reading whole sessions at once, as for the next request to a model: one at a time for each user.

That of a session with tens of thousands of messages takes a core for seconds, and a hundred megabytes. Many at once, of
one user, would keep the server from everyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from chat.files.places import NoPlace, OnePerPerson
from chat.limits.rates import RateLimited
from chat.models import User

# How many requests of a user wait, or are answered.
MOST = 20
RETRY_SECONDS = 5.0
_places = OnePerPerson()


@contextmanager
def reading_whole(user: User) -> Iterator[None]:
    """Wait until no other request of the user reads a whole session. Raises RateLimited if too many wait.

    Access is asked for after the wait: it may end in the meantime.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_places.place(user.pk, most=MOST))
        except NoPlace:
            raise RateLimited(RETRY_SECONDS) from None
        yield
