"""The subscribers of one session in one process, by what they get: events, pages by language, or notices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from agents.messages import Json
from chat.languages import in_language
from chat.live.event_json import dump
from chat.live.socket_queue import SharedFrame, SocketQueue
from chat.live.subscriber import Reader, Subscriber


class Audience:
    """Makes each frame once for all subscribers that get the same one. `pages` are grouped by language."""

    def __init__(self) -> None:
        self.events: set[SocketQueue] = set()
        self.readers: set[Reader] = set()
        self.pages: dict[str, set[SocketQueue]] = defaultdict(set)

    def __iter__(self) -> Iterator[Subscriber]:
        yield from self.events
        yield from self.readers
        for viewers in self.pages.values():
            yield from viewers

    def join(self, subscriber: Subscriber) -> None:
        match subscriber:
            case Reader():
                self.readers.add(subscriber)
            case SocketQueue(protocol="events"):
                self.events.add(subscriber)
            case SocketQueue():
                self.pages[subscriber.language].add(subscriber)

    def leave(self, subscriber: Subscriber) -> None:
        match subscriber:
            case Reader():
                self.readers.discard(subscriber)
            case SocketQueue(protocol="events"):
                self.events.discard(subscriber)
            case SocketQueue():
                pages = self.pages[subscriber.language]
                pages.discard(subscriber)
                if not pages:
                    del self.pages[subscriber.language]

    def names_by_user(self) -> dict[int, str]:
        """Return the names of the users by id. A user with two tabs counts once."""
        return {each.user_id: each.name for each in self if not each.closed}

    def send_to_clients(self, frame: Mapping[str, object], revision: int | None = None) -> None:
        if self.events:
            _hand_out(self.events, dump(frame), revision)

    def send_head(self, frame: Json, revision: int) -> None:
        """Send clients of events the session's revision, because an event may be lost."""
        text = dump(frame)
        for socket_queue in self.events:
            socket_queue.put_head(text, revision)

    def notify_readers(self, revision: int | None = None) -> None:
        """Notify readers that a revision was reached or the status has changed, or that a text has grown (None)."""
        for reader in self.readers:
            reader.notify(revision)

    def send_to_pages(self, frame: Json, revision: int | None = None) -> None:
        """Send all pages a frame that contains no interface text, such as text of a model."""
        if self.pages:
            _hand_out(set().union(*self.pages.values()), dump(frame), revision)

    def send_text(self, frame: Json, short: Sequence[object] | None) -> None:
        """Send all pages the growth of a text. `short` is the frame for pages that read short ones."""
        pages = set[SocketQueue]().union(*self.pages.values())
        others = pages if short is None else {page for page in pages if not page.short_frames}
        if len(others) < len(pages):
            _hand_out(pages - others, dump(short), None)
        if others:
            _hand_out(others, dump(frame), None)

    def show(
        self, draw: Callable[[], Json], revision: int | None = None, *, drawn: Mapping[str, Json] | None = None
    ) -> None:
        """Send pages the frame that `draw` returns, drawn once in each language of the open pages (UI-13).

        `drawn` contains frames that were drawn before, by language.
        """
        for language, viewers in self.pages.items():
            frame = drawn[language] if drawn and language in drawn else in_language(language, draw)
            _hand_out(viewers, dump(frame), revision)


def _hand_out(viewers: set[SocketQueue], text: str, revision: int | None) -> None:
    frame = SharedFrame.of(text, len(viewers))
    for socket_queue in viewers:
        socket_queue.put(frame, revision)
