"""Limits for the connections of a server process. They are counted here for both servers."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from django.conf import settings

from chat.command_frames import longest_frame
from chat.origin import network_of
from config.descriptors import descriptor_limit

# Seconds in which the head of a request must be complete, including the first byte of a connection.
HEAD_SECONDS = 10.0
# Seconds for which a connection of a proxy may be idle between two requests. A proxy must close it first: it may send a
# request while the server closes, and does not repeat a POST. Google Cloud keeps idle connections longest, for 600 s.
PROXY_IDLE_SECONDS = 650
# Seconds for which the rest of a refused body is read and dropped, so that the client can read the response.
LINGER_SECONDS = 5.0
# Seconds in which a peer must answer a close frame, and seconds in which it must take some data.
CLOSE_SECONDS = 5.0
STALL_SECONDS = 30.0
# Seconds without data after which a socket is sent a ping, and seconds in which the pong must arrive. `Keepalive` adds
# to the latter.
PING_SECONDS = 20.0
PONG_SECONDS = 30.0
# File descriptors that stay free for the database, files and connections to models.
RESERVED_DESCRIPTORS = 256
# Sockets that hold fewer bytes than this are not counted.
UNCOUNTED_BYTES = 64 * 1024
# How many of the longest frames all sockets of the process may hold together: unfinished, waiting, or being handled.
FRAMES_HELD = 6
# A socket whose unfinished frame grows more slowly than this between two sweeps is closed.
SWEEP_SECONDS = 20.0
SLOWEST_BYTES_PER_SECOND = 8 * 1024

# Bytes that a socket reads at a time. Tiny frames take much longer to handle than to arrive: 256 KB of them, as asyncio
# reads by itself, occupied the event loop for a third of a second.
READ_BYTES = 16 * 1024
# Bytes that it reads at a time after it was given up. They are dropped, which costs almost nothing.
DROPPED_BYTES = 256 * 1024
# The number of fragments in which a message may arrive. Each takes memory and time, even if it is empty.
MAX_FRAGMENTS = 10_000

TOO_LARGE = 1009
TRY_AGAIN_LATER = 1013
TOO_SLOW = 4408


class ConnectionLimit:
    """Counts connections by client address and in total. 0 per address and None in total mean no limit."""

    def __init__(self, per_address: int, in_all: int | None = None) -> None:
        self._per_address = per_address
        self._in_all = in_all
        self._open: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Count a connection and return True, or return False if there are too many. `release` ends the count."""
        network = network_of(address)
        if self._per_address and self._open[network] >= self._per_address:
            return False
        if self._in_all is not None and self._open.total() >= self._in_all:
            return False
        self._open[network] += 1
        return True

    def release(self, address: str) -> None:
        network = network_of(address)
        self._open[network] -= 1
        if self._open[network] <= 0:
            del self._open[network]


class Keepalive:
    """Calculates how long the peer of a socket may take to answer a ping.

    The pong follows everything that was sent before the ping, and the frame that the peer is sending. Either may take
    minutes on a slow connection, while data waits in buffers of the system or of a proxy that the server cannot see. So
    the peer gets the time that the slowest accepted connection needs, and any data from it counts as a sign of life.
    """

    def __init__(self) -> None:
        self._sent = 0
        self._sent_before_ping = 0
        # The amount that was sent before the last answered ping.
        self._taken = 0
        self._has_received = False

    def note_sent(self, size: int) -> None:
        """Note that a message of this size was handed to the connection."""
        self._sent += size

    def note_received(self) -> None:
        """Note that data came from the peer."""
        self._has_received = True

    def note_ping(self) -> float:
        """Note a ping, and return the number of seconds in which its pong must arrive."""
        self._sent_before_ping = self._sent
        self._has_received = False
        return PONG_SECONDS + (self._sent - self._taken) / SLOWEST_BYTES_PER_SECOND

    def note_pong(self) -> None:
        """Note that the last ping was answered."""
        self._taken = self._sent_before_ping

    def is_alive(self) -> bool:
        """Return whether data came from the peer since the ping, or since the last call."""
        is_alive, self._has_received = self._has_received, False
        return is_alive


class StallTimer:
    """Aborts a connection whose peer takes no data for STALL_SECONDS."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._size = transport.get_write_buffer_size()
        self._timer = self._later()

    def cancel(self) -> None:
        self._timer.cancel()

    def _later(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(STALL_SECONDS, self._check)

    def _check(self) -> None:
        size = self._transport.get_write_buffer_size()
        if size >= self._size:
            self._transport.abort()
        else:
            self._size = size
            self._timer = self._later()


class FrameHolder(Protocol):
    """A socket that holds unfinished frames, or complete ones that the application has not handled yet."""

    def give_up(self, code: int) -> None:
        """Close the socket, and drop the frames that it holds."""


@dataclass(slots=True)
class Held:
    unfinished: int = 0
    whole: int = 0
    # The unfinished bytes at the last sweep.
    swept: int = 0


@dataclass
class FrameBudget:
    """Limits the bytes that all sockets hold. Beyond it, the socket with the largest unfinished frame is closed."""

    limit: int
    _held: dict[FrameHolder, Held] = field(default_factory=dict)
    _sweep: asyncio.TimerHandle | None = None

    def update(self, socket: FrameHolder, *, unfinished: int, whole: int) -> None:
        """Note the number of bytes that a socket holds."""
        if unfinished + whole < UNCOUNTED_BYTES:
            self._held.pop(socket, None)
            return
        held = self._held.setdefault(socket, Held())
        held.unfinished, held.whole = unfinished, whole
        while self._held and self.total > self.limit:
            largest = max(self._held, key=lambda each: (self._held[each].unfinished, each is socket))
            del self._held[largest]
            largest.give_up(TRY_AGAIN_LATER)
        self._sweep_later()

    def forget(self, socket: FrameHolder) -> None:
        self._held.pop(socket, None)

    def sweep(self) -> None:
        """Close sockets whose unfinished frame has hardly grown since the last sweep."""
        self._sweep = None
        for socket, held in list(self._held.items()):
            grown = held.unfinished - held.swept
            if held.swept and 0 <= grown < SLOWEST_BYTES_PER_SECOND * SWEEP_SECONDS:
                del self._held[socket]
                socket.give_up(TOO_SLOW)
            held.swept = held.unfinished
        self._sweep_later()

    def _sweep_later(self) -> None:
        if self._held and self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self.sweep)

    @property
    def total(self) -> int:
        return sum(held.unfinished + held.whole for held in self._held.values())


@dataclass(frozen=True)
class Limits:
    """The limits of a server process."""

    connections: ConnectionLimit
    frames: FrameBudget
    longest_frame: int
    head_seconds: float
    # Seconds for which a connection may be idle between two requests. None: the server's own value.
    idle_seconds: int | None


def limits() -> Limits:
    """Read the limits from the settings."""
    descriptors = descriptor_limit()
    in_all = None if descriptors is None else max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2)
    # Behind a proxy, all connections come from the proxy, which has to count those of clients.
    per_address = 0 if settings.HTTPS else settings.CONNECTIONS_PER_ADDRESS
    return Limits(
        connections=ConnectionLimit(per_address, in_all),
        frames=FrameBudget(FRAMES_HELD * longest_frame()),
        longest_frame=longest_frame(),
        head_seconds=HEAD_SECONDS,
        idle_seconds=PROXY_IDLE_SECONDS if settings.HTTPS else None,
    )
