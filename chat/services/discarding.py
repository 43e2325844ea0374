"""Delete stored files that no row refers to. Without a row, a file only takes space, so errors are only logged."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.files.storage import default_storage
from django.utils.translation import gettext as _

from chat.errors import FilesUnavailable, ServiceError

logger = logging.getLogger(__name__)


def discard_files(*names: str) -> None:
    """Delete stored files. If the storage does not respond, try no further ones, because each would wait as long."""
    for name in names:
        try:
            default_storage.delete(name)
        except OSError as error:
            logger.warning("Could not delete the file %s: %s", name, error)
            if isinstance(error, FilesUnavailable):
                return


@contextmanager
def discard_after_error(*names: str) -> Iterator[None]:
    """Delete the stored files if the block fails. Raise ServiceError if a file could not be stored.

    If the storage does not respond, delete in the background, so that the user does not wait for a second timeout.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, FilesUnavailable):
            threading.Thread(target=discard_files, args=names, name="parley-discard", daemon=True).start()
        else:
            discard_files(*names)
        if not isinstance(error, OSError):
            raise
        logger.error("Could not store a file: %s", error)
        raise ServiceError("unavailable", _("Couldn’t store the file. Try again later.")) from error
