"""Reading whole sessions at once, as for the next request to a model: one at a time for each user.

Reading a session of tens of thousands of messages uses a core for seconds, and a hundred megabytes. Many such requests
of one user at once would make the server unusable for others.
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

    Check the access inside: it may end during the wait.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_places.place(user.pk, most=MOST))
        except NoPlace:
            raise RateLimited(RETRY_SECONDS) from None
        yield
