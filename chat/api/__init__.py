"""The REST API: `api.py` has it as a whole, each other module one part of it.

A part is a `Router`, mounted in `api.py`. Its functions take an `ApiRequest`, whose `user` is known by cookie or
token, fetch every session by `auth.session_of(request, session_id, needs)`, and raise what services raise:
`ServiceError` becomes a problem (problems.py) with the code that sockets send. Writes go through `commands.py`, as on a
socket. An asynchronous function calls what touches the database, `session_of` too, through `sync_to_async`.
"""
