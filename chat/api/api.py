"""The API: its routers, authentication, parser and error handlers."""

from __future__ import annotations

from chat.api import (
    agents,
    catalog,
    errors,
    events,
    files,
    history,
    knowledge,
    me,
    messages,
    notes,
    projections,
    rules,
    schedules,
    sessions,
    sharing,
    steps,
    suggestions,
    transfer,
    turns,
    webhooks,
    workspace,
    workspace_invitations,
)
from chat.api.auth import Bearer, Cookie
from chat.api.openapi import ParleyAPI
from chat.api.parsing import JsonParser, refuse_unknown_input

api = ParleyAPI(
    title="Parley",
    version="1",
    description=(
        "Read and control the sessions of a Parley server, their messages and their agents. "
        "The guide with examples is docs/api.md, and docs/protocol.md explains the rules of all protocols."
    ),
    urls_namespace="api",
    docs_url=None,
    servers=[{"url": "/", "description": "This server"}],
    openapi_extra={"info": {"license": {"name": "MIT", "identifier": "MIT"}}},
    auth=[Bearer(), Cookie()],
    parser=JsonParser(),
)
errors.install(api)
# In the order in which the API's description lists the operations.
PARTS = (
    *(me, workspace_invitations, notes, knowledge, rules, webhooks, agents, catalog, transfer, sessions, sharing),
    *(messages, suggestions, history, schedules, turns, files, workspace, events, steps, projections),
)
for part in PARTS:
    for path_view in part.router.path_operations.values():
        for operation in path_view.operations:
            refuse_unknown_input(operation)
    api.add_router("", part.router)
