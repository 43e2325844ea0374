"""The API as a whole: its parts, who is let in, how it refuses."""

from __future__ import annotations

from chat.api import (
    catalogue,
    errors,
    files,
    guests,
    leaving_out,
    messages,
    my_data,
    people,
    projections,
    sessions,
    steps,
    transfer,
    turns,
)
from chat.api.auth import Bearer, Cookie
from chat.api.bodies import JsonParser
from chat.api.openapi import Described

api = Described(
    title="Parley",
    version="1",
    description="Sessions, their messages and what their agents make of them. How to use it: docs/api.md.",
    urls_namespace="api",
    docs_url=None,
    auth=[Bearer(), Cookie()],
    parser=JsonParser(),
)
errors.install(api)
PARTS = (
    *(people, my_data, guests, catalogue, transfer),
    *(sessions, messages, leaving_out, turns, files, steps, projections),
)
for part in PARTS:
    api.add_router("", part.router)
