"""The API as a whole: its parts, who is let in, how it refuses."""

from __future__ import annotations

from chat.api import (
    catalogue,
    context_inclusion,
    errors,
    events,
    files,
    guests,
    history,
    me,
    messages,
    my_data,
    projections,
    sessions,
    sharing,
    steps,
    suggestions,
    transfer,
    turns,
)
from chat.api.auth import Bearer, Cookie
from chat.api.openapi import Described
from chat.api.parsing import JsonParser, refuse_unknown_query

api = Described(
    title="Parley",
    version="1",
    description="Sessions, their messages and their agents. docs/api.md shows how to use it with examples.",
    urls_namespace="api",
    docs_url=None,
    servers=[{"url": "/", "description": "This server"}],
    openapi_extra={"info": {"license": {"name": "MIT", "identifier": "MIT"}}},
    auth=[Bearer(), Cookie()],
    parser=JsonParser(),
)
errors.install(api)
PARTS = (
    *(me, my_data, guests, catalogue, transfer, sessions, sharing, messages, context_inclusion, suggestions, history),
    *(turns, files, events, steps, projections),
)
for part in PARTS:
    for path_view in part.router.path_operations.values():
        for operation in path_view.operations:
            refuse_unknown_query(operation)
    api.add_router("", part.router)
