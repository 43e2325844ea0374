"""What drawing one text may cost, and how work is stopped that would cost more.

The limits on size, output, expansion and colours depend on the text alone, so that a page and a stream agree. The meter
measures time and only decides where the work is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter, thread_time

# Markdown is drawn up to the end of the line in which it reaches this length; the rest is shown as source. Ordinary
# text of this length takes 0.1 to 0.3 s of CPU, and twice that to be shown by a browser.
LONGEST_MARKDOWN = 100_000
# A line that is longer is cut there.
LONGEST_LINE = 4_000
# So much of a stream may be one unfinished block: parsing it again takes some 20 ms, whatever it holds.
LONGEST_TAIL = 50_000
# HTML may be so many times as long as its source, and what is left then is shown as source, which at worst is five
# times as long; below a floor it may be longer, as it harms nobody.
OUTPUT_FACTOR = 15
LEAST_OUTPUT = 100_000
# What is not Markdown (people's words, results of tools) is shown without links, colours and layout beyond this.
LONGEST_STYLED = 100_000
# What link references add to a text, unless it is longer itself; cmark has the same rule.
MOST_EXPANDED = 100_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may be drawn in one call, for the place where it is done.

    `seconds` of CPU; code of up to so many `coloured` characters gets its colours, as a lexer's worst case grows with
    the square of the length; whether a lexer may be loaded, which takes 10 to 50 ms.
    """

    seconds: float = inf
    coloured: float = inf
    loads_lexers: bool = True


UNLIMITED = Allowance()
# One frame of a stream, or one finished message.
ON_LOOP = Allowance(0.03, 3_000, loads_lexers=False)
# One text in the thread of a request, which shares the interpreter with the event loop.
IN_THREAD = Allowance(0.05, 3_000)


class TooDear(BaseException):
    """Drawing has used up its meter.

    Not an Exception: those are caught around the parser and mean that a text cannot be drawn at all.
    """


class Meter:
    """Stops work in the current thread once it has used so much CPU. Time that other threads take does not count."""

    def __init__(self, seconds: float = inf) -> None:
        self._count = 0
        self.start(seconds)

    @property
    def is_limited(self) -> bool:
        return self._until != inf

    def start(self, seconds: float, now: float | None = None) -> None:
        """Allow so many seconds of CPU from now on; `now` is the thread's CPU time if the caller has read it."""
        self._until = inf if seconds == inf else seconds + (thread_time() if now is None else now)
        # Reading the thread's CPU time is a system call, which the clock is not. CPU time never passes elapsed time.
        self._not_before = seconds + perf_counter()

    def tick(self, steps: int = 1) -> None:
        """Count small steps; looks at the clock for every sixteenth. Raises TooDear."""
        self._count += steps
        if self._count >= 16:
            self._count = 0
            self.check()

    def check(self) -> None:
        """Raise TooDear if the time is used up."""
        if perf_counter() > self._not_before and thread_time() > self._until:
            raise TooDear


class Expansions:
    """Counts the characters that link references add to a text.

    Beyond the limit references stay text; `strict` raises TooDear instead, for a stream that cannot know its length.
    """

    def __init__(self, limit: int = MOST_EXPANDED, *, strict: bool = False) -> None:
        self._limit = limit
        self._strict = strict
        self._added = 0

    def add(self, characters: int) -> bool:
        """Count characters that are to be added; False if that is too many. Raises TooDear if strict."""
        self._added += characters
        if self._added > self._limit and self._strict:
            raise TooDear
        return self._added <= self._limit


def end_of_markdown(text: str, before: int = 0) -> int | None:
    """Return where the Markdown of a text ends because it is too long; None if it does not end here.

    `before`: how many characters of the text came before this piece of it.
    """
    first, last = LONGEST_MARKDOWN - before, LONGEST_MARKDOWN + LONGEST_LINE - before
    if len(text) <= first:
        return None
    newline = text.find("\n", max(0, first), last)
    if newline >= 0:
        return newline + 1
    return last if len(text) >= last else None


def most_expanded(source_length: int) -> int:
    """Return how many characters link references may add to a source."""
    return max(MOST_EXPANDED, source_length)


def most_output(source_length: int) -> int:
    """Return how long the HTML of a source may be."""
    return max(LEAST_OUTPUT, OUTPUT_FACTOR * source_length)
