"""The subscribers of one session in one process, by what they get: events, pages by language, or notices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from agents.messages import Json
from chat.languages import speaking
from chat.live.event_json import dump
from chat.live.shared_frame import SharedFrame
from chat.live.socket_queue import SocketQueue
from chat.live.subscriber import Reader, Subscriber


class Audience:
    """Make each frame once for all subscribers that get the same. `pages` are by language."""

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
                self._leave_page(subscriber)

    def _leave_page(self, socket_queue: SocketQueue) -> None:
        self.pages[socket_queue.language].discard(socket_queue)
        if not self.pages[socket_queue.language]:
            del self.pages[socket_queue.language]

    def people(self) -> dict[int, str]:
        """Return the names of the users by id. A user with two tabs is one."""
        return {each.user_id: each.name for each in self if not each.closed}

    def tell_events(self, frame: Mapping[str, object], revision: int | None = None) -> None:
        if self.events:
            _hand_out(self.events, dump(frame), revision)

    def tell_head(self, frame: Json, revision: int) -> None:
        """Tell viewers of events how far the session is, since an event may be lost."""
        text = dump(frame)
        for socket_queue in self.events:
            socket_queue.put_head(text, revision)

    def notify_readers(self, revision: int | None = None) -> None:
        """Notify readers: a revision has been reached, or a text has grown."""
        for reader in self.readers:
            reader.notify(revision)

    def tell_pages(self, frame: Json, revision: int | None = None) -> None:
        """Tell all pages what has no words of ours in it, such as the text that a model writes."""
        if self.pages:
            _hand_out(set().union(*self.pages.values()), dump(frame), revision)

    def tell_text(self, frame: Json, short: Sequence[object] | None) -> None:
        """Tell all pages how a text grows. `short` is the frame for those that read short ones."""
        pages = set[SocketQueue]().union(*self.pages.values())
        others = pages if short is None else {page for page in pages if not page.short_frames}
        if len(others) < len(pages):
            _hand_out(pages - others, dump(short), None)
        if others:
            _hand_out(others, dump(frame), None)

    def show(
        self, draw: Callable[[], Json], revision: int | None = None, *, drawn: Mapping[str, Json] | None = None
    ) -> None:
        """Show pages what `draw` makes, drawn once in each language that is read here (UI-13).

        `drawn` has frames that were made before, by language.
        """
        for language, viewers in self.pages.items():
            frame = drawn[language] if drawn and language in drawn else speaking(language, draw)
            _hand_out(viewers, dump(frame), revision)


def _hand_out(viewers: set[SocketQueue], text: str, revision: int | None) -> None:
    frame = SharedFrame.of(text, len(viewers))
    for socket_queue in viewers:
        socket_queue.put(frame, revision)
