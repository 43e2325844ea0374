"""A receiver of webhooks on 127.0.0.1. Its check of signatures shares no code with the sender."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event, Thread
from typing import Any

SECONDS = 20.0
BLOCK = 64


@dataclass(frozen=True)
class Request:
    """A request that has arrived. `body` has the bytes as they were sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def data(self) -> dict[str, Any]:
        """Return the `data` of the event in the body."""
        data: dict[str, Any] = json.loads(self.body)["data"]
        return data

    @property
    def type(self) -> str:
        return str(json.loads(self.body)["type"])

    def is_signed_with(self, secret: str) -> bool:
        """Return whether the signature is valid by RFC 2104 and the specification of Standard Webhooks."""
        kind, _, key = secret.partition("_")
        assert kind == "whsec"
        signed = b".".join([self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body])
        padded = base64.b64decode(key).ljust(BLOCK, b"\0")
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + signed).digest()
        outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded) + inner).digest()
        return f"v1,{base64.b64encode(outer).decode()}" in self.headers["webhook-signature"].split(" ")


class Receiver:
    """A receiver that answers with the `statuses` in order, then with 204. A path in `held` waits for its event."""

    def __init__(self) -> None:
        self.statuses: deque[int] = deque()
        self.headers: dict[str, str] = {}
        self.body = b""
        self.held: dict[str, Event] = {}
        self.open: dict[str, int] = defaultdict(int)
        self.most_open: dict[str, int] = defaultdict(int)
        self._came: Queue[Request] = Queue()
        self.url = ""

    def take(self) -> Request:
        """Wait for the next request."""
        return self._came.get(timeout=SECONDS)

    async def takes(self, count: int = 1) -> list[Request]:
        return [await asyncio.to_thread(self.take) for _ in range(count)]

    @property
    def is_empty(self) -> bool:
        """Whether all requests that have arrived were taken."""
        return self._came.empty()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.open[path] += 1
        self.most_open[path] = max(self.most_open[path], self.open[path])
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self._came.put(Request(path, headers, body))
        if path in self.held:
            self.held[path].wait(SECONDS)
        self.open[path] -= 1
        handler.send_response(self.statuses.popleft() if self.statuses else 204)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        with suppress(ConnectionError):  # the sender may close the connection for its time limit or the body's length
            handler.end_headers()
            handler.wfile.write(self.body)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver, and yield it."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.answer(self)

        def log_message(self, *_values: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        for event in receiver.held.values():
            event.set()
        server.shutdown()
        thread.join()
        server.server_close()
