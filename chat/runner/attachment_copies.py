"""Copies of the session's attachments in its workspace, where the agent's tools read them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from agents.loop import Agent
from agents.sandbox.copies import ATTACHMENTS, Copy, update_copies
from chat.errors import FilesUnavailable
from chat.models import Attachment, ChatMessage, attached_to
from chat.queries.attachments import NoSuchAttachment, data_of

logger = logging.getLogger(__name__)

# In bytes. File systems allow 255, and a number may be added to the name.
LONGEST_NAME = 200
LONGEST_ENDING = 40


def with_copies(agent: Agent, rows: Iterable[ChatMessage]) -> Agent:
    """Copy the attachments of these rows to the agent's workspace, if the agent has tools for files.

    A file that cannot be copied is left out. Raise FilesUnavailable if the storage of the files cannot be reached.
    """
    if agent.sandbox is None:
        return agent
    files = [attachment for row in rows for attachment in attached_to(row)]
    if not files and not (agent.sandbox.workspace / ATTACHMENTS).is_dir():
        return agent
    try:
        copies = [
            Copy(name, each.size, int(each.created_at.timestamp()), partial(_data_of, each))
            for name, each in zip(names_of([each.name for each in files]), files, strict=True)
        ]
        usable = update_copies(agent.sandbox.workspace, ATTACHMENTS, copies)
    except FilesUnavailable:
        raise
    except OSError as error:
        logger.warning("Could not copy attachments to %s: %r", agent.sandbox.workspace, error)
        return agent
    return replace(agent, sandbox=replace(agent.sandbox, copies=ATTACHMENTS)) if usable and files else agent


def _data_of(attachment: Attachment) -> bytes | None:
    try:
        return data_of(attachment)
    except NoSuchAttachment:
        return None


def names_of(names: Iterable[str]) -> Iterator[str]:
    """Yield names for files in one folder. Each is short enough and differs from the names before it."""
    taken = set[str]()
    for name in names:
        stem, dot, ending = name.rpartition(".")
        if not stem or len(ending.encode()) > LONGEST_ENDING:
            stem, dot, ending = name, "", ""
        room = LONGEST_NAME - len(ending.encode())
        stem = stem.replace("/", "_").encode()[:room].decode(errors="ignore").strip(". ") or "file"
        number, made = 1, f"{stem}{dot}{ending}"
        while made.casefold() in taken:
            number += 1
            made = f"{stem} ({number}){dot}{ending}"
        taken.add(made.casefold())
        yield made
