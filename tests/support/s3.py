"""An S3 server in the tests' own process. It is moto's, which implements the protocol and keeps objects in memory."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest
from moto.server import ThreadedMotoServer

from chat.s3 import S3Storage

BUCKET, KEY_ID, KEY = "parley", "test-key", "test-secret"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server with an empty bucket. A test that stops it must start it again."""

    endpoint: str
    server: Any

    def options(self, prefix: str) -> dict[str, str]:
        return {"bucket": BUCKET, "prefix": prefix, "endpoint": self.endpoint, "key_id": KEY_ID, "key": KEY}

    def environment(self, prefix: str) -> dict[str, str]:
        """Return the environment of a process that keeps its files below a prefix."""
        return {
            "S3_BUCKET": BUCKET,
            "S3_PREFIX": prefix,
            "S3_ENDPOINT": self.endpoint,
            "S3_REGION": "us-east-1",
            "S3_ACCESS_KEY_ID": KEY_ID,
            "S3_SECRET_ACCESS_KEY": KEY,
        }

    def storage(self, prefix: str) -> S3Storage:
        return S3Storage(**self.options(prefix))


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run an S3 server on a free port, with the bucket BUCKET."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        # Each client would parse the descriptions of Amazon's services, which takes longer than most tests.
        patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        try:
            host, port = server.get_host_and_port()
            found = S3Server(f"http://{host}:{port}", server)
            found.storage("")._client.create_bucket(Bucket=BUCKET)
            yield found
        finally:
            server.stop()
