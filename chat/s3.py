"""Django's storage of uploaded files on a server that speaks S3."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from botocore.session import Session
from django.core.files.base import File
from django.core.files.storage import Storage
from django.utils.deconstruct import deconstructible

from chat.errors import FilesRefused, FilesUnavailable

logger = logging.getLogger(__name__)

# Seconds until an attempt is cancelled if the server does not respond, and the number of attempts.
CONNECT_SECONDS = 3
READ_SECONDS = 10
ATTEMPTS = 2
# Requests at the same time. Further ones open connections that are not kept.
CONNECTIONS = 32
# Client errors of HTTP that are temporary.
TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
# Bytes that a file requests from the network at a time.
BUFFER = 1 << 17


@deconstructible
class S3Storage(Storage):
    """Files as objects of a bucket, below a prefix.

    Parley never uses a name twice, so saving does not search for a free name. Raises FileNotFoundError for an object
    that does not exist, and FilesUnavailable, which is an OSError, for all other errors of S3.
    """

    def __init__(
        self, *, bucket: str, prefix: str = "", endpoint: str = "", region: str = "", key_id: str = "", key: str = ""
    ) -> None:
        self.bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        # One client for all threads: it takes 60 ms to make, and keeps connections open.
        self._client = Session().create_client(
            "s3",
            region_name=region or None,
            endpoint_url=endpoint or None,
            aws_access_key_id=key_id or None,
            aws_secret_access_key=key or None,
            config=Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=CONNECTIONS,
                # Servers other than Amazon's do not have a host name per bucket, nor its newer checksums.
                s3={"addressing_style": "path" if endpoint else "auto"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        if mode != "rb":
            raise ValueError(f"{mode!r} is not supported: files are read as bytes, and written by save().")
        return File(io.BufferedReader(_Reader(self, name, self.size(name)), BUFFER), name)

    def _save(self, name: str, content: File[Any]) -> str:
        body: Any = content
        while isinstance(body, File):  # a File without a name is false, which botocore takes for an empty body
            body = body.file
        body.seek(0)
        with self._translate_errors(name):
            self._client.put_object(**self._object(name), Body=body)
        return name

    def delete(self, name: str) -> None:
        """Delete a file. A missing one is not an error: Amazon's server reports none, but Google's answers 404."""
        with suppress(FileNotFoundError), self._translate_errors(name):
            self._client.delete_object(**self._object(name))

    def exists(self, name: str) -> bool:
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        """Return the folders and files in a folder; none if it does not exist, because S3 has no folders."""
        above = self._prefix + (f"{path.strip('/')}/" if path.strip("/") else "")
        folders, files = list[str](), list[str]()
        with self._translate_errors(path):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.bucket, Prefix=above, Delimiter="/"):
                folders += [each["Prefix"][len(above) :].rstrip("/") for each in page.get("CommonPrefixes", ())]
                files += [each["Key"][len(above) :] for each in page.get("Contents", ())]
        return folders, [name for name in files if name]

    def size(self, name: str) -> int:
        return int(self._head(name)["ContentLength"])

    def get_modified_time(self, name: str) -> datetime:
        found: datetime = self._head(name)["LastModified"]
        return found

    def move(self, name: str, new_name: str) -> None:
        """Move a file within the bucket, without downloading it. Raise FileNotFoundError."""
        source = {"CopySource": {"Bucket": self.bucket, "Key": self._object(name)["Key"]}}
        with self._translate_errors(name):
            self._client.copy_object(**self._object(new_name), **source)
        self.delete(name)

    def read_from(self, name: str, start: int) -> Any:
        """Return the stream of a file's bytes from `start` on. Raise FileNotFoundError."""
        with self._translate_errors(name):
            return self._client.get_object(**self._object(name), Range=f"bytes={start}-")["Body"]

    def _head(self, name: str) -> dict[str, Any]:
        with self._translate_errors(name):
            found: dict[str, Any] = self._client.head_object(**self._object(name))
            return found

    def _object(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._prefix + name}

    @contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                raise FileNotFoundError(f"{name} is not in the bucket {self.bucket}") from error
            raise unavailable(error) from error
        except BotoCoreError as error:
            raise unavailable(error) from error


def unavailable(error: ClientError | BotoCoreError) -> FilesUnavailable:
    """Log an error of S3, and return the error for the caller to raise."""
    logger.warning("File storage failed: %s", error)
    if isinstance(error, NoCredentialsError):
        return FilesRefused(str(error))
    status = error.response["ResponseMetadata"]["HTTPStatusCode"] if isinstance(error, ClientError) else 0
    is_refused = 400 <= status < 500 and status not in TRANSIENT
    return FilesRefused(str(error)) if is_refused else FilesUnavailable()


class _Reader(io.RawIOBase):
    """A file that is read on demand, from any position. If a connection breaks, it is opened once more."""

    def __init__(self, storage: S3Storage, name: str, size: int) -> None:
        self._storage = storage
        self._name = name
        self._size = size
        self._position = 0
        self._body: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position != self._position:
            self._drop()
            self._position = max(0, position)
        return self._position

    def readinto(self, buffer: Any) -> int:
        if self._position >= self._size or not len(buffer):
            return 0
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _read(self, most: int) -> bytes:
        for is_last in (False, True):
            try:
                if self._body is None:
                    self._body = self._storage.read_from(self._name, self._position)
                data: bytes = self._body.read(most)
            except BotoCoreError as error:
                self._drop()
                if is_last:
                    raise unavailable(error) from error
            else:
                return data
        raise AssertionError("the loop returns or raises")

    def close(self) -> None:
        self._drop()
        super().close()

    def _drop(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.close()
