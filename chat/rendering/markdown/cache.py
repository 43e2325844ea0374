"""A cache of drawn texts, bounded by the characters that it holds."""

from collections import OrderedDict
from threading import RLock


class BlockCache:
    """The least recently used texts leave first; a text of more than a sixteenth of the limit never enters."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = RLock()  # pages are drawn in threads

    def get(self, text: str) -> tuple[str, ...] | None:
        """Return the blocks of the text, if they are still here."""
        with self._lock:
            found = self._entries.get(text)
            if found is not None:
                self._entries.move_to_end(text)
            return found

    def put(self, text: str, blocks: tuple[str, ...]) -> None:
        """Keep the blocks of the text and let the oldest go."""
        if _weight(text, blocks) > self._limit // 16:
            return
        with self._lock:
            self._drop(text)
            self._entries[text] = blocks
            self._size += _weight(text, blocks)
            while self._size > self._limit:
                self._drop(next(iter(self._entries)))

    def put_once(self, text: str, blocks: tuple[str, ...]) -> tuple[str, ...]:
        """Keep the blocks of the text unless it has some already; return those that are kept."""
        with self._lock:
            known = self.get(text)
            if known is None:
                self.put(text, blocks)
        return known or blocks

    def _drop(self, text: str) -> None:
        blocks = self._entries.pop(text, None)
        if blocks is not None:
            self._size -= _weight(text, blocks)


def _weight(text: str, blocks: tuple[str, ...]) -> int:
    return len(text) + sum(map(len, blocks)) + 500  # a short text costs its objects too
