"""The REST API: `api.py` assembles it from one module per resource.

The module of a resource has a `Router`. Its views take an `ApiRequest`, whose `user` is authenticated by cookie or
token, fetch each session by `auth.session_of(request, session_id, needs)`, and let errors of services pass: errors.py
answers a `ServiceError` with a problem that has the code that sockets send. Views write through `commands.py`, as
sockets do. An async view calls what uses the database, `session_of` too, through `sync_to_async`.

ninja routes, authenticates, validates requests and describes the API. Views return their own responses: responses.py
says why.
"""

from chat.overrides.ninja_imports import import_ninja

import_ninja()
