"""Connections that set time limits for their statements: `OPTIONS["limits"]`, by PostgreSQL's names, in milliseconds.

They are set by a statement, once for each connection. As start-up options (libpq's `options`) they would be refused by
PgBouncer, and in Django's `connection_created` signal they would cost a round trip each time the pool lends one.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection, of the pool or of its own."""

    def get_connection_params(self) -> dict[str, Any]:
        params = super().get_connection_params()
        params.pop("limits", None)
        return params

    def _configure_connection(self, connection: Any) -> bool:
        """Configure a new connection; called by Django for connections of their own, by the pool for its own ones."""
        needs_commit: bool = super()._configure_connection(connection)  # type: ignore[misc]  # missing in the stubs
        self.limit(connection, self.settings_dict["OPTIONS"].get("limits", {}))
        return needs_commit

    @staticmethod
    def limit(connection: Any, limits: dict[str, int]) -> None:
        """Set the time limits of an open connection."""
        for name, milliseconds in limits.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, str(milliseconds)])
