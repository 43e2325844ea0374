"""Limits for rendering one text, and the meter that stops work in time.

The limits on size, output, expansion and colors depend only on the text, so that a page and a stream agree. The meter
measures time, and it decides only in which process the work is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter, thread_time

# In characters. Markdown is rendered up to the end of the line that reaches this length; the rest is shown as source.
# Ordinary text of this length takes 0.1 to 0.3 s of CPU time, and twice that in a browser.
MAX_MARKDOWN_LENGTH = 100_000
# If that line is longer than this, it is cut here.
MAX_LINE_LENGTH = 4_000
# The longest unfinished block of a stream, in characters. Parsing it takes about 20 ms.
MAX_TAIL_LENGTH = 50_000
# How many times longer than its source HTML may be. The rest is shown as source, which is at most five times longer.
# HTML below a fixed length is always accepted.
OUTPUT_FACTOR = 15
MIN_OUTPUT = 100_000
# Text that is not Markdown (user messages, tool results) has no links, colors or layout after this many characters.
MAX_STYLED_LENGTH = 100_000
# The characters that link references may add to a text, or the text's length if that is more. cmark has the same rule.
MAX_EXPANDED = 100_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one call of the renderer.

    `seconds` are CPU time. `colored` is the length of code that may be highlighted, because the worst case of a quick
    lexer grows with the square of the length. `loads_lexers`: a lexer may be loaded, which takes 10 to 50 ms.
    `slow_lexers`: code may be highlighted by a lexer that can take forever. Only a timer of the process can stop it.
    Without `colors`, all code stays plain.
    """

    seconds: float = inf
    colored: float = inf
    loads_lexers: bool = True
    slow_lexers: bool = True
    colors: bool = True


UNLIMITED = Allowance()
# For one frame of a stream, or one finished message.
ON_LOOP = Allowance(0.03, 3_000, loads_lexers=False, slow_lexers=False)
# For one text in the thread of a request, which shares the interpreter lock with the event loop.
IN_THREAD = Allowance(0.05, 3_000, slow_lexers=False)


class BudgetExceeded(BaseException):
    """The meter's time is used up.

    It is not an Exception, because code around the parser treats an Exception as a text that cannot be rendered at all.
    """


class Meter:
    """Stops work in the current thread after some seconds of CPU time. The time of other threads does not count."""

    def __init__(self, seconds: float = inf) -> None:
        self._count = 0
        self.start(seconds)

    @property
    def is_limited(self) -> bool:
        return self._until != inf

    @property
    def is_over(self) -> bool:
        return perf_counter() > self._not_before and thread_time() > self._until

    def start(self, seconds: float, now: float | None = None) -> None:
        """Allow this many seconds of CPU time from now on. `now` is the thread's CPU time if the caller has read it."""
        self._until = inf if seconds == inf else seconds + (thread_time() if now is None else now)
        # Reading the thread's CPU time is a system call; reading the clock is not. CPU time never exceeds elapsed time.
        self._not_before = seconds + perf_counter()

    def tick(self, steps: int = 1) -> None:
        """Count small steps, and check the time after every 16 steps. Raise BudgetExceeded."""
        self._count += steps
        if self._count >= 16:
            self._count = 0
            self.check()

    def check(self) -> None:
        """Raise BudgetExceeded if the time is used up."""
        if self.is_over:
            raise BudgetExceeded


class Expansions:
    """Counts the characters that link references add to a text.

    After the limit, references stay text. With `strict`, BudgetExceeded is raised instead, for streams of unknown
    length.
    """

    def __init__(self, limit: int = MAX_EXPANDED, *, strict: bool = False) -> None:
        self._limit = limit
        self._strict = strict
        self._added = 0

    def add(self, characters: int) -> bool:
        """Count characters to add. Return False if they are too many; if strict, raise BudgetExceeded."""
        self._added += characters
        if self._added > self._limit and self._strict:
            raise BudgetExceeded
        return self._added <= self._limit


def end_of_markdown(text: str, before: int = 0) -> int | None:
    """Return the index at which the Markdown of a long text ends, or None if it does not end in this piece.

    `before` is the number of characters before this piece.
    """
    first, last = MAX_MARKDOWN_LENGTH - before, MAX_MARKDOWN_LENGTH + MAX_LINE_LENGTH - before
    if len(text) <= first:
        return None
    newline = text.find("\n", max(0, first), last)
    if newline >= 0:
        return newline + 1
    return last if len(text) >= last else None


def most_expanded(source_length: int) -> int:
    """Return the number of characters that link references may add to a source."""
    return max(MAX_EXPANDED, source_length)


def most_output(source_length: int) -> int:
    """Return the maximum length of the HTML of a source, in characters."""
    return max(MIN_OUTPUT, OUTPUT_FACTOR * source_length)
