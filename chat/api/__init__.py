"""The REST API: `api.py` assembles it from one module per resource.

Each module has a `Router`. Its views take an `ApiRequest`, whose `user` was authenticated by a cookie or a token. They
fetch sessions with `auth.session_of(request, session_id, needs)`, which checks the user's role. Views do not catch the
errors of services: errors.py turns a `ServiceError` into a problem with the same code that sockets send. Views change
sessions through `commands.py`, so the checks are those of the sockets. An async view wraps all code that uses the
database, including `session_of`, in `sync_to_async`.

ninja routes, authenticates and validates requests, and generates the OpenAPI description. Views build their own
responses, for the reasons given in responses.py.
"""

from chat.overrides.ninja_imports import import_ninja

import_ninja()
