"""Connections that set time limits for their statements: `OPTIONS["limits"]`, by PostgreSQL's names, in milliseconds.

They also turn off the compilation of queries (JIT). One statement sets all of this once for each connection. PgBouncer
would refuse it as start-up options (libpq's `options`). Django's `connection_created` signal would cost a round trip
each time the pool lends a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from chat.overrides.postgres.pool import Pool

# PostgreSQL compiles a query if its estimated cost is high, and compiles it again for each execution. The estimate for
# the list of sessions grows with all sessions of the installation, although the list reads only some of them. With
# 45,000 sessions, compiling it took 50 times as long as executing it.
COMPILATION = {"jit": "off"}


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection, from the pool or a separate one."""

    @property
    def limits(self) -> Mapping[str, int]:
        """The time limits that the settings give to new connections."""
        limits: Mapping[str, int] = self.settings_dict["OPTIONS"].get("limits", {})
        return limits

    @property
    def pool(self) -> Pool | None:
        """The pool of this database, or None for a separate connection. Django's own has a fixed class and check."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        pools: dict[str, Pool] = self._connection_pools  # type: ignore[attr-defined]  # missing in the stubs
        if self.alias not in pools:
            parameters = {**self.get_connection_params(), "autocommit": True}
            pool = Pool(kwargs=parameters, open=False, configure=self._configure_connection, **options)
            pools.setdefault(self.alias, pool)  # another thread may have been faster
        return pools[self.alias]

    def set_limits(self, limits: Mapping[str, int]) -> None:
        """Change the time limits of the current connection."""
        self.ensure_connection()
        _set(self.connection, limits)

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        params.pop("limits", None)
        return params

    def _configure_connection(self, connection: Any) -> bool:
        """Configure a new connection.

        Django calls this for separate connections, and the pool for those that it opens.
        """
        needs_commit: bool = super()._configure_connection(connection)  # type: ignore[misc]  # missing in the stubs
        _set(connection, {**COMPILATION, **self.limits})
        return needs_commit


def _set(connection: Any, settings: Mapping[str, int | str]) -> None:
    if settings:
        calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
        values = [text for name, value in settings.items() for text in (name, str(value))]
        connection.execute(f"SELECT {calls}", values)
